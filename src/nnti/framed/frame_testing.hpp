// SPDX-License-Identifier: BSD-3-Clause
// For tests and fuzz targets: frames as bytes.
#pragma once

#include "nnti/framed/wire.hpp"

#include <cstring>
#include <vector>

namespace nnti::framed {

/// A frame with a body of zeros.
inline std::vector<std::byte> frame_of(FrameHeader header, std::size_t body_bytes) {
  header.size = static_cast<std::uint32_t>(body_bytes);
  std::vector<std::byte> bytes(sizeof header + body_bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace nnti::framed
