// SPDX-License-Identifier: BSD-3-Clause
// The greetings of two tcp transports, in the bootstrap. A connection consists of two conversations: the bootstrap's
// own, whose socket stays open, and whose end is the peer's end; and a second one, whose socket becomes the stream. Its
// hello says which connection it is for, by the token that the other side gave it.
#pragma once

#include <nessie/result.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace nnti::tcp {

struct Hello {
  std::uint32_t magic = 0x4e544350;
  std::uint16_t version = 1;
  enum class Kind : std::uint16_t { kConnection = 1, kStream } kind = Kind::kConnection;
  std::uint64_t token = 0;
};
static_assert(sizeof(Hello) == 16);

std::vector<std::byte> encode_hello(Hello::Kind kind, std::uint64_t token);
/// kBadMessage; kUnsupported: another version or byte order.
nessie::Result<Hello> decode_hello(std::span<const std::byte> bytes);

}  // namespace nnti::tcp
