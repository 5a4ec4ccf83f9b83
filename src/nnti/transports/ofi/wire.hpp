// SPDX-License-Identifier: BSD-3-Clause
// What two ofi transports say to each other. Host byte order: libfabric's RDM endpoints connect alike machines only,
// and the magic number tells when they are not.
//
// In the bootstrap each side sends a Hello: its fabric address, and a token, which the other puts into every message:
// it says from whom a message is, and keeps strangers, who know only the address, from having their messages heard.
//
// Over the fabric go frames: a FrameHeader, then `size` bytes.
//   kMessage  the bytes are the endpoint's message; `operation` is its kind
//   kCredit   nothing but the credits
//   kGet      wants [offset, offset+length) of buffer `key`: as `exposed` says, written to (address, rkey), in the
//             answer, or over the lane
//   kPut      likewise in the other direction: read from (address, rkey), or the bytes that follow
//   kDone     the answer: `result` is a nessie code; then, for an inline kGet that went well, the bytes
//   kBye      the sender closes; no frame follows
//   kProbe    wants a kCredit: sent when nothing has come for a while although something should
// Every frame but kCredit and kProbe uses up one of the credits that its receiver gave; every frame returns some.
// Every frame has a number. A provider whose own connection broke makes another without a word, and frames that were
// under way are gone: then a number is missing, and the receiver breaks the connection. The probe is for the last ones.
//
// Where the provider has nothing but TCP and both Hellos offer a lane (nnti/stream/README.md), the side that connects
// makes one, and frames and bulk go over it: the same frames, and chunks for what does not fit a frame.
#pragma once

#include "nnti/stream/lane.hpp"
#include "nnti/transport/transport.hpp"

#include <nessie/result.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nnti::ofi {

inline constexpr std::uint32_t kMagic = 0x4e4f4649;
inline constexpr std::uint16_t kVersion = 3;
/// What a frame holds that is received where the provider was given room for it beforehand, for every frame of every
/// peer; and of gets and puts, over a lane as well.
inline constexpr std::size_t kMaxInlineBytes = 4096 + kChannelHeaderBytes;
/// What a frame holds over a lane: what Endpoint sends in one piece, and room for the headers of channel and seal.
inline constexpr std::size_t kMaxMessageBytes = 8192 + 64;
inline constexpr std::uint32_t kCredits = 16;      ///< frames that a peer may have on the way to us
inline constexpr std::size_t kMaxNameBytes = 256;  ///< of a fabric address

enum class FrameType : std::uint16_t { kMessage = 1, kCredit, kGet, kPut, kDone, kBye, kProbe };

struct FrameHeader {
  std::uint64_t token = 0;
  FrameType type = FrameType::kMessage;
  std::uint16_t credits = 0;
  std::uint32_t size = 0;
  std::uint64_t operation = 0;  ///< the asking side's name for it
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t address = 0;
  std::uint64_t rkey = 0;
  std::uint16_t result = 0;
  std::uint16_t exposed = 0;  ///< of Exposed
  std::uint32_t number = 0;   ///< of the frame, from 0
};
static_assert(sizeof(FrameHeader) == 72);
/// How the bytes of a get or put go: in the frames; between the buffers, address and rkey hold; over the lane.
enum Exposed : std::uint16_t { kInline = 0, kExposed = 1, kOverLane = 2 };
inline constexpr std::size_t kMaxPostedFrameBytes = sizeof(FrameHeader) + kMaxInlineBytes;
inline constexpr std::size_t kMaxFrameBytes = sizeof(FrameHeader) + kMaxMessageBytes;
static_assert(kMaxFrameBytes <= stream::kMaxFrameBytes);

struct Frame {
  FrameHeader header;
  std::span<const std::byte> body;
};

/// Empty if `bytes` are no whole frame.
inline std::optional<Frame> decode_frame(std::span<const std::byte> bytes) {
  Frame frame;
  if (bytes.size() < sizeof frame.header) return std::nullopt;
  std::memcpy(&frame.header, bytes.data(), sizeof frame.header);
  frame.body = bytes.subspan(sizeof frame.header);
  const auto &header = frame.header;
  if (header.type < FrameType::kMessage || header.type > FrameType::kProbe) return std::nullopt;
  const bool is_message = header.type == FrameType::kMessage;
  if (header.size != frame.body.size()) return std::nullopt;
  if (header.size > (is_message ? kMaxMessageBytes : kMaxInlineBytes)) return std::nullopt;
  if (is_message && header.operation > kMaxMessageKind) return std::nullopt;
  const bool inline_put = header.type == FrameType::kPut && header.exposed == kInline;
  if (inline_put && header.length != header.size) return std::nullopt;
  const bool inline_get = header.type == FrameType::kGet && header.exposed == kInline;
  if (inline_get && header.length > kMaxInlineBytes) return std::nullopt;
  if (header.exposed > kOverLane) return std::nullopt;
  return frame;
}

struct Hello {
  std::uint64_t token = 0;
  std::string provider;
  std::vector<std::byte> name;  ///< of the fabric's endpoint
  bool lane = false;            ///< may have one
};

std::vector<std::byte> encode_hello(const Hello &hello);
/// kBadMessage; kUnsupported: another version or byte order.
nessie::Result<Hello> decode_hello(std::span<const std::byte> bytes);

}  // namespace nnti::ofi
