// SPDX-License-Identifier: BSD-3-Clause
// What two ucx transports say to each other besides framed/wire.hpp; README.md has it byte by byte.
//
// In the bootstrap each side sends a Hello: the address of its UCX worker, and a token, which the other puts into
// everything it sends: it says from whom it is, and keeps strangers, who know only the address, from being heard.
//
// Over UCX go active messages of two kinds: frames; and chunks, a Chunk with the bytes as UCX's payload.
#pragma once

#include "nnti/framed/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace nnti::ucx {

inline constexpr std::uint32_t kMagic = 0x4e554358;
inline constexpr std::uint16_t kVersion = 3;
inline constexpr std::size_t kMaxAddressBytes = 8192;

struct Chunk {
  std::uint64_t token = 0;
  framed::ChunkHeader header;
};
static_assert(sizeof(Chunk) == 56);

/// Empty if `bytes` are none, or do not fit a payload of `size_bytes`.
std::optional<Chunk> decode_chunk(std::span<const std::byte> bytes, std::size_t size_bytes);

struct Hello {
  std::uint64_t token = 0;
  std::vector<std::byte> address;  ///< of the UCX worker
};

std::vector<std::byte> encode_hello(const Hello &hello);
/// kBadMessage; kUnsupported: another version or byte order.
nessie::Result<Hello> decode_hello(std::span<const std::byte> bytes);

}  // namespace nnti::ucx
