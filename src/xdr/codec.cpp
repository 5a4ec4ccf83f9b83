// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <xdr/codec.hpp>

namespace xdr {

void Reader::fail(const char *fault) {
  if (fault_ != nullptr) return;
  fault_ = fault;
  fault_offset_ = static_cast<std::size_t>(at_ - begin_);
  at_ = end_;
}

nessie::Status Reader::finish_badly() {
  fail("bytes follow the end of the value");
  return nessie::Error{nessie::Code::kBadMessage,
                       fmt::format("cannot decode the message: at byte {}, {}", fault_offset_, fault_)};
}

}  // namespace xdr
