// SPDX-License-Identifier: BSD-3-Clause
// The frames and chunks that two sides of a framed connection exchange; README.md has them byte by byte. Host byte
// order: each transport's greeting tells when the other side's order is not ours.
//
// A frame is a FrameHeader, then `size` bytes:
//   kMessage  the bytes are the endpoint's message; `operation` is its kind
//   kCredit   nothing but the credits
//   kGet      wants [offset, offset+length) of buffer `key`. At most kMaxInlineBytes come in the answer; more are moved
//             by the transport, and the bytes say how, if it needs that
//   kPut      the bytes are for [offset, offset+length) of buffer `key`; of more than kMaxInlineBytes, as kGet
//   kDone     the answer: `result` is a nessie code; then, for a short kGet that went well, the bytes
//   kBye      the sender closes; no frame follows
//   kProbe    wants a kCredit
//   kFirstOwn and above: the transport's own
//
// A chunk is a ChunkHeader and bytes of a get or put that is too long for a frame. A put's first chunk asks for
// everything; kDone answers when the last one is in place. A get's last chunk is its answer. The chunks of an operation
// come in order.
#pragma once

#include "nnti/transport/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace nnti::framed {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

/// What Endpoint sends in one piece, and room for the headers of channel and seal.
inline constexpr std::size_t kMaxMessageBytes = 8192 + 64;
inline constexpr std::size_t kMaxInlineBytes = 4096;
inline constexpr std::size_t kMaxHintBytes = 16;  ///< of a longer kGet or kPut: how its bytes are moved
inline constexpr std::size_t kMaxChunkBytes = 1 << 20;

enum class FrameType : std::uint16_t { kMessage = 1, kCredit, kGet, kPut, kDone, kBye, kProbe, kFirstOwn = 16 };
/// Of the types of a transport's own, these and those above cost no credit.
inline constexpr auto kFirstFree = static_cast<FrameType>(32);

struct FrameHeader {
  std::uint64_t token = 0;  ///< the receiving side's name for the connection
  FrameType type = FrameType::kMessage;
  std::uint16_t credits = 0;  ///< returned
  std::uint32_t size = 0;
  std::uint32_t sequence = 0;   ///< of the connection's frames in this direction, from 0
  std::uint32_t result = 0;     ///< a nessie code
  std::uint64_t operation = 0;  ///< the asking side's name for it
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
static_assert(sizeof(FrameHeader) == 56);
inline constexpr std::size_t kMaxFrameBytes = sizeof(FrameHeader) + kMaxMessageBytes;

struct Frame {
  FrameHeader header;
  std::span<const std::byte> body;
};

/// Whether a frame of this type uses up one of the credits that its receiver gave.
inline bool costs_credit(FrameType type) {
  return type < kFirstFree && type != FrameType::kCredit && type != FrameType::kProbe && type != FrameType::kBye;
}

/// Empty if `bytes` are no whole frame.
std::optional<Frame> decode_frame(std::span<const std::byte> bytes);

enum class ChunkType : std::uint32_t { kPut = 1, kGot };

struct ChunkHeader {
  std::uint64_t operation = 0;  ///< the asking side's name for it
  std::uint64_t key = 0;        ///< kPut, with `offset`
  std::uint64_t offset = 0;     ///< of the operation, in the buffer
  std::uint64_t length = 0;     ///< of the operation
  std::uint64_t at = 0;         ///< of the chunk, in the operation
  ChunkType type = ChunkType::kPut;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(ChunkHeader) == 48);

/// Empty if `header` is none, or does not fit a payload of `size_bytes`.
std::optional<ChunkHeader> decode_chunk(std::span<const std::byte> header, std::size_t size_bytes);

}  // namespace nnti::framed
