// SPDX-License-Identifier: BSD-3-Clause
// What two ofi transports say to each other besides framed/wire.hpp; README.md has it byte by byte.
//
// In the bootstrap each side sends a Hello: its fabric address, and a token, which the other puts into every frame: it
// says from whom a frame is, and keeps strangers, who know only the address, from having their frames heard.
//
// A kGet or kPut that is too long for a frame has an Exposed for a body: the owner writes to, or reads from, what the
// asking side exposes.
//
// A provider whose own connection broke makes another without a word, and frames that were under way are gone: then a
// number is missing, and the receiver breaks the connection. kProbe is for the last ones: it is sent when nothing has
// come for a while although something should.
#pragma once

#include "nnti/framed/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nnti::ofi {

inline constexpr std::uint32_t kMagic = 0x4e4f4649;
inline constexpr std::uint16_t kVersion = 4;
/// Less than a frame may hold: the provider is given room for every frame of every peer beforehand.
inline constexpr std::size_t kMaxPostedMessageBytes = 4096 + kChannelHeaderBytes;
inline constexpr std::size_t kMaxPostedFrameBytes = sizeof(framed::FrameHeader) + kMaxPostedMessageBytes;
inline constexpr std::size_t kMaxNameBytes = 256;  ///< of a fabric address

/// The asking side's buffer, for one transfer.
struct Exposed {
  std::uint64_t address = 0;
  std::uint64_t rkey = 0;
};
static_assert(sizeof(Exposed) == framed::kMaxHintBytes);

struct Hello {
  std::uint64_t token = 0;
  std::string provider;
  std::vector<std::byte> name;  ///< of the fabric's endpoint
};

std::vector<std::byte> encode_hello(const Hello &hello);
/// kBadMessage; kUnsupported: another version or byte order.
nessie::Result<Hello> decode_hello(std::span<const std::byte> bytes);

}  // namespace nnti::ofi
