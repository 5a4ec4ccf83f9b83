// SPDX-License-Identifier: BSD-3-Clause
// The checks that every transport makes before it moves a byte.
#pragma once

#include "nnti/transport.hpp"

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
    return Error{Code::kRefused, needed == Rights::kRemoteRead ? "the buffer's owner does not let peers read it"
                                                               : "the buffer's owner does not let peers write it"};
  return {};
}

}  // namespace nnti
