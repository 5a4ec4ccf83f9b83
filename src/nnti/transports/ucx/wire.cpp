// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/wire.hpp"

#include <algorithm>
#include <iterator>

namespace nnti::ucx {

namespace {

struct HelloHead {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t reserved = 0;
  std::uint64_t token = 0;
  std::uint32_t address_size = 0;
  std::uint32_t flags = 0;
};
static_assert(sizeof(HelloHead) == 24);
constexpr std::uint32_t kLaneFlag = 1;

nessie::Error bad(nessie::Code code, const char *message) { return {code, message, nessie::Scope::kPeer}; }

/// Whether a frame of that type may have such fields, and so many bytes.
bool makes_sense(const FrameHeader &header) {
  switch (header.type) {
    case FrameType::kMessage: return header.size <= kMaxMessageBytes && header.operation <= kMaxMessageKind;
    case FrameType::kPut: return header.size <= kMaxInlineBytes && header.size == header.length;
    case FrameType::kDone: return header.size <= kMaxInlineBytes;
    case FrameType::kCredit:
    case FrameType::kGet:
    case FrameType::kBye: return header.size == 0;
  }
  return false;
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

std::vector<std::byte> encode_hello(const Hello &hello) {
  HelloHead head;
  head.token = hello.token;
  head.address_size = static_cast<std::uint32_t>(hello.address.size());
  head.flags = hello.lane ? kLaneFlag : 0;
  std::vector<std::byte> bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  std::ranges::copy(hello.address, std::back_inserter(bytes));
  return bytes;
}

nessie::Result<Hello> decode_hello(std::span<const std::byte> bytes) {
  HelloHead head;
  if (bytes.size() < sizeof head) return bad(nessie::Code::kBadMessage, "the peer's greeting is too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kMagic || head.version != kVersion)
    return bad(nessie::Code::kUnsupported, "the peer speaks another version of Nessie's ucx transport");
  const auto address = bytes.subspan(sizeof head);
  if (head.token == 0 || head.address_size == 0 || head.address_size > kMaxAddressBytes ||
      address.size() != head.address_size)
    return bad(nessie::Code::kBadMessage, "the peer's greeting contradicts itself");
  return Hello{head.token, {address.begin(), address.end()}, (head.flags & kLaneFlag) != 0};
}

}  // namespace nnti::ucx
