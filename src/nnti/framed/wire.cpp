// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/framed/wire.hpp"

#include <cstring>

namespace nnti::framed {
namespace {

/// Whether a frame of that type may have such fields, and so many bytes.
bool makes_sense(const FrameHeader &header) {
  const bool is_short = header.length <= kMaxInlineBytes;
  switch (header.type) {
    case FrameType::kMessage: return header.size <= kMaxMessageBytes && header.operation <= kMaxMessageKind;
    case FrameType::kGet: return header.size <= (is_short ? 0 : kMaxHintBytes);
    case FrameType::kPut: return is_short ? header.size == header.length : header.size <= kMaxHintBytes;
    case FrameType::kDone: return header.size <= kMaxInlineBytes;
    case FrameType::kCredit:
    case FrameType::kBye:
    case FrameType::kProbe: return header.size == 0;
    default: return header.type >= FrameType::kFirstOwn && header.size <= kMaxInlineBytes;
  }
}

}  // namespace

std::optional<Frame> decode_frame(std::span<const std::byte> bytes) {
  Frame frame;
  auto &header = frame.header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  frame.body = bytes.subspan(sizeof header);
  if (header.size != frame.body.size() || !makes_sense(header)) return std::nullopt;
  return frame;
}

std::optional<ChunkHeader> decode_chunk(std::span<const std::byte> bytes, std::size_t size_bytes) {
  ChunkHeader header;
  if (bytes.size() != sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.type != ChunkType::kPut && header.type != ChunkType::kGot) return std::nullopt;
  if (size_bytes == 0 || size_bytes > kMaxChunkBytes) return std::nullopt;
  if (header.at > header.length || size_bytes > header.length - header.at) return std::nullopt;
  return header;
}

}  // namespace nnti::framed
