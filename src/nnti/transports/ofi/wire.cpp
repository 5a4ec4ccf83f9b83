// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/wire.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace nnti::ofi {

namespace {

struct HelloHead {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t provider_size = 0;
  std::uint64_t token = 0;
  std::uint32_t name_size = 0;
  std::uint32_t flags = 0;  ///< none are defined
};
static_assert(sizeof(HelloHead) == 24);

nessie::Error bad(nessie::Code code, const char *message) { return {code, message, nessie::Scope::kPeer}; }

}  // namespace

std::vector<std::byte> encode_hello(const Hello &hello) {
  HelloHead head;
  head.provider_size = static_cast<std::uint16_t>(hello.provider.size());
  head.token = hello.token;
  head.name_size = static_cast<std::uint32_t>(hello.name.size());
  std::vector<std::byte> bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  const auto provider = std::as_bytes(std::span(hello.provider));
  std::ranges::copy(provider, std::back_inserter(bytes));
  std::ranges::copy(hello.name, std::back_inserter(bytes));
  return bytes;
}

nessie::Result<Hello> decode_hello(std::span<const std::byte> bytes) {
  HelloHead head;
  if (bytes.size() < sizeof head) return bad(nessie::Code::kBadMessage, "the peer's greeting is too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kMagic || head.version != kVersion)
    return bad(nessie::Code::kUnsupported, "the peer speaks another version of Nessie's ofi transport");
  const auto body = bytes.subspan(sizeof head);
  if (head.name_size == 0 || head.name_size > kMaxNameBytes || head.token == 0 ||
      body.size() != std::size_t{head.provider_size} + head.name_size)
    return bad(nessie::Code::kBadMessage, "the peer's greeting contradicts itself");
  Hello hello;
  hello.token = head.token;
  hello.provider.assign(reinterpret_cast<const char *>(body.data()), head.provider_size);
  hello.name.assign(body.begin() + head.provider_size, body.end());
  return hello;
}

}  // namespace nnti::ofi
