// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/wire.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace nnti::ucx {

namespace {

struct HelloHead {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t reserved = 0;
  std::uint64_t token = 0;
  std::uint32_t address_size = 0;
  std::uint32_t flags = 0;  ///< none are defined
};
static_assert(sizeof(HelloHead) == 24);

nessie::Error bad(nessie::Code code, const char *message) { return {code, message, nessie::Scope::kPeer}; }

}  // namespace

std::optional<Chunk> decode_chunk(std::span<const std::byte> bytes, std::size_t size_bytes) {
  Chunk chunk;
  if (bytes.size() != sizeof chunk) return std::nullopt;
  std::memcpy(&chunk, bytes.data(), sizeof chunk);
  if (!framed::decode_chunk(bytes.subspan(sizeof chunk.token), size_bytes)) return std::nullopt;
  return chunk;
}

std::vector<std::byte> encode_hello(const Hello &hello) {
  HelloHead head;
  head.token = hello.token;
  head.address_size = static_cast<std::uint32_t>(hello.address.size());
  std::vector<std::byte> bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  std::ranges::copy(hello.address, std::back_inserter(bytes));
  return bytes;
}

nessie::Result<Hello> decode_hello(std::span<const std::byte> bytes) {
  HelloHead head;
  if (bytes.size() < sizeof head) return bad(nessie::Code::kBadMessage, "the peer's greeting is too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kMagic || head.version != kVersion)
    return bad(nessie::Code::kUnsupported, "the peer speaks another version of Nessie's ucx transport");
  const auto address = bytes.subspan(sizeof head);
  if (head.token == 0 || head.address_size == 0 || head.address_size > kMaxAddressBytes ||
      address.size() != head.address_size)
    return bad(nessie::Code::kBadMessage, "the peer's greeting contradicts itself");
  return Hello{head.token, {address.begin(), address.end()}};
}

}  // namespace nnti::ucx
