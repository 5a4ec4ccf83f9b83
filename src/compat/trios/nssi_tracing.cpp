// SPDX-License-Identifier: BSD-3-Clause
// A service's trace (Trios_trace.h), begun anew by a client.
#include <compat/trios/nssi_paper.hpp>

#include <compat/trios/nssi_standard.hpp>

#include <Trios_trace.h>
#include <fmt/format.h>
#include <xdr/codec.hpp>
#include <xdr/types.hpp>

#include <climits>
#include <cstring>
#include <utility>

namespace nssi::trios::paper {
namespace {

struct ResetTrace {
  std::int32_t type = 0;
  xdr::Bounded<std::string, PATH_MAX - 1> file;
  xdr::Bounded<std::string, 512> groups;
  template <class A> void xdr(A &a) { a(type, file, groups); }
};

Status reset(const ResetTrace &wanted) {
  const char *file = wanted.file.empty() ? nullptr : wanted.file.c_str();
  const int result = trace_reset(file, wanted.type, wanted.groups.c_str());
  if (result == 0) return {};
  if (result < 0)
    return Error{Code::kInvalidArgument,
                 fmt::format("the service has not all of the groups \"{}\"; those that it has are traced",
                             static_cast<const std::string &>(wanted.groups))};
  return Error{Code::kIo,
               fmt::format("the service cannot write {}: {}; its trace is as it was", file, std::strerror(result)),
               nessie::Scope::kOperation, result};
}

void answer(Request &request) {
  const auto wanted = xdr::decode<ResetTrace>(request.args());
  auto status = wanted.ok() ? reset(*wanted) : Status(wanted.error());
  (void)(status.ok() ? request.reply() : request.reply_error(status.error()));
}

}  // namespace

void add_reset_trace(Runtime &runtime) {
  Operation operation{kStandard, 0, kResetTraceOp, "trace_reset", HandlerKind::kShort, answer};
  operation.role = Role::kOperator;  // it overwrites files
  (void)runtime.add_operation(std::move(operation));
}

int reset_trace(int transport, std::uint64_t peer, const char *file, int type, const char *groups, long timeout_ms) {
  const ResetTrace wanted{type, {file != nullptr ? file : ""}, {groups != nullptr ? groups : ""}};
  const auto args = xdr::encode_checked(wanted);
  if (!args.ok()) return fail(NSSI_EINVAL, "the name of a file has less than 4096 bytes, the list at most 512");
  Bytes none;
  return call_standard(transport, peer, kResetTraceOp, *args, timeout_ms, none);
}

}  // namespace nssi::trios::paper
