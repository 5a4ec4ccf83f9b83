// SPDX-License-Identifier: BSD-3-Clause
// What two ucx transports say to each other. Host byte order: UCX connects alike machines only, and the magic number
// tells when they are not. README.md has the table.
//
// In the bootstrap each side sends a Hello: the address of its UCX worker, and a token, which the other puts into
// everything it sends: it says from whom it is, and keeps strangers, who know only the address, from being heard.
//
// Over UCX go active messages of two kinds. A frame is a FrameHeader, then `size` bytes:
//   kMessage  the bytes are the endpoint's message; `operation` is its kind
//   kCredit   nothing but the credits
//   kGet      wants [offset, offset+length) of buffer `key`: in the answer, if that is at most kMaxInlineBytes; else in
//             chunks, and the answer only says what went wrong
//   kPut      the bytes are for [offset, offset+length) of buffer `key`
//   kDone     the answer: `result` is a nessie code; then, for a short kGet that went well, the bytes
//   kBye      the sender closes; no frame follows
// Every frame but kCredit uses up one of the credits that its receiver gave; every frame returns some.
//
// A chunk is a ChunkHeader and, as UCX's payload, bytes of a get or put that is too long for a frame. A put's first
// chunk asks for everything; kDone answers when the last one is in place. The chunks of an operation come in order.
//
// Where UCX has nothing but TCP on both sides, and both Hellos offer a lane (nnti/stream/README.md), the side that
// connects makes one, and nobody knocks: the same frames go over the lane, and the lane's own chunks.
#pragma once

#include "nnti/stream/lane.hpp"
#include "nnti/transport/transport.hpp"

#include <nessie/result.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace nnti::ucx {

inline constexpr std::uint32_t kMagic = 0x4e554358;
inline constexpr std::uint16_t kVersion = 2;
/// What Endpoint sends in one piece, and room for the headers of channel and seal.
inline constexpr std::size_t kMaxMessageBytes = 8192 + 64;
inline constexpr std::size_t kMaxInlineBytes = 4096;
inline constexpr std::size_t kMaxChunkBytes = 1 << 20;
inline constexpr std::uint32_t kCredits = 16;  ///< frames that a peer may have on the way to us
inline constexpr std::size_t kMaxAddressBytes = 8192;

enum class FrameType : std::uint16_t { kMessage = 1, kCredit, kGet, kPut, kDone, kBye };

struct FrameHeader {
  std::uint64_t token = 0;
  FrameType type = FrameType::kMessage;
  std::uint16_t credits = 0;
  std::uint32_t size = 0;
  std::uint32_t sequence = 0;  ///< of the frames on this connection; UCX keeps their order without promising it
  std::uint32_t result = 0;
  std::uint64_t operation = 0;  ///< the asking side's name for it
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
static_assert(sizeof(FrameHeader) == 56);
inline constexpr std::size_t kMaxFrameBytes = sizeof(FrameHeader) + kMaxMessageBytes;
static_assert(kMaxFrameBytes <= stream::kMaxFrameBytes);

struct Frame {
  FrameHeader header;
  std::span<const std::byte> body;
};

/// Empty if `bytes` are no whole frame.
std::optional<Frame> decode_frame(std::span<const std::byte> bytes);

enum class ChunkType : std::uint32_t { kPut = 1, kGot };

struct ChunkHeader {
  std::uint64_t token = 0;
  std::uint64_t operation = 0;
  std::uint64_t key = 0;     ///< kPut, with `offset`
  std::uint64_t offset = 0;  ///< of the operation, in the buffer
  std::uint64_t length = 0;  ///< of the operation
  std::uint64_t at = 0;      ///< of the chunk, in the operation
  ChunkType type = ChunkType::kPut;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(ChunkHeader) == 56);

/// Empty if `header` is none, or does not fit a payload of `size_bytes`.
std::optional<ChunkHeader> decode_chunk(std::span<const std::byte> header, std::size_t size_bytes);

struct Hello {
  std::uint64_t token = 0;
  std::vector<std::byte> address;  ///< of the UCX worker
  bool lane = false;               ///< may have one
};

std::vector<std::byte> encode_hello(const Hello &hello);
/// kBadMessage; kUnsupported: another version or byte order.
nessie::Result<Hello> decode_hello(std::span<const std::byte> bytes);

}  // namespace nnti::ucx
