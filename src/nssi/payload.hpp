// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a request, or a result, on their way into a message or a block.
#pragma once

#include <nssi/nssi.hpp>

#include <algorithm>

namespace nssi {

/// Bytes, or who writes them.
struct Payload {
  std::span<const std::byte> bytes;
  std::size_t size_bytes = bytes.size();
  const Encoder *encode = nullptr;

  void write(std::span<std::byte> at) const {
    if (encode != nullptr)
      (*encode)(at);
    else
      std::ranges::copy(bytes, at.begin());
  }
};

}  // namespace nssi
