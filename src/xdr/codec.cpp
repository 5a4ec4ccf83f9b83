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

std::uint32_t Reader::get_count(std::size_t element_bytes) {
  auto count = get_number<std::uint32_t>();
  if (count <= left() / element_bytes) return count;
  fail("a count is larger than the rest of the message");
  return 0;
}

const std::byte *Reader::get_bytes(std::size_t size) {
  const auto pad = detail::padding(size);
  if (left() < size + pad) {
    fail("the message ends within bytes");
    return nullptr;
  }
  const auto *bytes = at_;
  for (std::size_t i = 0; i < pad; ++i)
    if (bytes[size + i] != std::byte{0}) {
      fail("padding is not zero");
      return nullptr;
    }
  at_ += size + pad;
  return bytes;
}

nessie::Status Reader::finish_badly() {
  fail("bytes follow the end of the value");
  return nessie::Error{nessie::Code::kBadMessage,
                       fmt::format("cannot decode the message: at byte {}, {}", fault_offset_, fault_)};
}

}  // namespace xdr
