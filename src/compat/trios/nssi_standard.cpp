// SPDX-License-Identifier: BSD-3-Clause
#include <compat/trios/nssi_standard.hpp>

#include <algorithm>
#include <climits>

namespace nssi::trios::paper {

int call_standard(int transport, std::uint64_t peer, OpCode op, const Bytes &args, long timeout_ms, Bytes &result) {
  const auto runtime = c_api::runtime_of(transport_id(transport));
  if (!runtime) return NSSI_ENOTINIT;
  CallOptions options;
  if (timeout_ms >= 0) options.deadline = Deadline::from_ms(static_cast<int>(std::min<long>(timeout_ms, INT_MAX)));
  auto call = runtime->call({{peer}, kStandard, 0}, op, args, options);
  if (auto status = call.wait(); !status.ok()) return to_trios(c_api::fail(status.error()));
  result = call.result();
  return NSSI_OK;
}

}  // namespace nssi::trios::paper
