// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/tcp/wire.hpp"

#include <cstring>

namespace nnti::tcp {

using nessie::Code;
using nessie::Error;

std::vector<std::byte> encode_hello(Hello::Kind kind, std::uint64_t token) {
  Hello hello;
  hello.kind = kind;
  hello.token = token;
  std::vector<std::byte> bytes(sizeof hello);
  std::memcpy(bytes.data(), &hello, sizeof hello);
  return bytes;
}

nessie::Result<Hello> decode_hello(std::span<const std::byte> bytes) {
  Hello hello;
  if (bytes.size() != sizeof hello)
    return Error{Code::kBadMessage, "the peer's greeting has the wrong size", nessie::Scope::kPeer};
  std::memcpy(&hello, bytes.data(), sizeof hello);
  if (hello.magic != Hello().magic || hello.version != Hello().version)
    return Error{Code::kUnsupported, "the peer speaks another version of Nessie's tcp transport", nessie::Scope::kPeer};
  const bool known = hello.kind == Hello::Kind::kConnection || hello.kind == Hello::Kind::kStream;
  if (known && hello.token != 0) return hello;
  return Error{Code::kBadMessage, "the peer's greeting contradicts itself", nessie::Scope::kPeer};
}

}  // namespace nnti::tcp
