// SPDX-License-Identifier: BSD-3-Clause
// The checks that every transport makes before it moves a byte, and what the answer of an owner that made them means.
#pragma once

#include "nnti/transport/transport.hpp"

#include <fmt/core.h>

namespace nnti {

inline bool has_right(Rights granted, Rights needed) {
  auto needed_bits = static_cast<std::uint32_t>(needed);
  return (static_cast<std::uint32_t>(granted) & needed_bits) == needed_bits;
}

inline Error unknown_key() {
  return {Code::kRefused, "the peer has no such buffer: it was unregistered, or the handle is forged"};
}

/// `size_bytes` at `offset` against the owner's registration.
inline Status check_access(std::uint64_t registered_bytes, Rights granted, std::uint64_t offset,
                           std::uint64_t size_bytes, Rights needed) {
  if (offset > registered_bytes || size_bytes > registered_bytes - offset)
    return Error{Code::kOutOfRange, fmt::format("bytes {} to {} lie outside the registered buffer of {} bytes", offset,
                                                offset + size_bytes, registered_bytes)};
  if (!has_right(granted, needed))
    return Error{Code::kRefused, needed == Rights::kRemoteRead    ? "the buffer's owner does not let peers read it"
                                 : needed == Rights::kRemoteWrite ? "the buffer's owner does not let peers write it"
                                                                  : "the buffer's owner allows no atomic operations"};
  return {};
}

/// As it came from a peer. kBadMessage: there is no such code.
inline Code received_code(std::uint64_t value) {
  constexpr auto kLast = static_cast<std::uint64_t>(Code::kUnavailable);
  return value <= kLast ? static_cast<Code>(value) : Code::kBadMessage;
}

/// Of a get or put that the peer did not carry out.
inline Error refused_by_peer(Code code) {
  switch (code) {
    case Code::kOutOfRange: return {code, "outside of the peer's registered buffer; correct offset and length"};
    case Code::kRefused: return {code, "the peer refuses: no buffer has this key (any more), or it lacks the right"};
    case Code::kBusy: return {code, "the peer has too many transfers under way; try again"};
    case Code::kNoMemory:
      return {code,
              "the peer's network cannot register the memory; let it lock more there (ulimit -l), or register less"};
    case Code::kCancelled: return {Code::kPeerLost, "the peer closes the connection", nessie::Scope::kPeer};
    default: return {code, "the peer could not transfer the data"};
  }
}

}  // namespace nnti
