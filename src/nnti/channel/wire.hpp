// SPDX-License-Identifier: BSD-3-Clause
// What two channels say to each other; README.md gives it byte by byte. All of it is untrusted when it comes in.
#pragma once

#include "nnti/transport/transport.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace nnti::channel {

inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = kChannelHeaderBytes;
inline constexpr std::uint64_t kMaxNumber = (std::uint64_t{1} << 48) - 1;
inline constexpr std::size_t kMaxBitmapBytes = 32;

/// The first byte. Values up to kMaxMessageKind: a numbered message, of that MessageKind.
enum class Type : std::uint8_t {
  kClose = 32,        ///< numbered: nothing follows
  kAcknowledge = 33,  ///< body: a bitmap of what arrived out of order
  kPing = 34,
  kPong = 35,
  kOpen = 40,     ///< first on every connection, from the side that connected; body: Opening
  kOpened = 41,   ///< the answer; body: Opened
  kUnknown = 42,  ///< the answer if there is no such session
};

struct Header {
  std::uint8_t type = 0;
  std::uint64_t number = 0;        ///< of a numbered message, from 0; of others, the next one's
  std::uint64_t acknowledged = 0;  ///< how many numbered messages of the other side have arrived with none missing
  bool numbered() const { return type <= kMaxMessageKind || type == static_cast<std::uint8_t>(Type::kClose); }
};

using HeaderBytes = std::array<std::byte, kHeaderBytes>;
using SessionId = std::array<std::byte, 16>;

/// How much of what was sent a side may keep unacknowledged, and so how much the other must be able to hold.
struct Limits {
  std::uint32_t messages = 0;
  std::uint32_t bytes = 0;
  Limits smaller(const Limits &other) const {
    return {std::min(messages, other.messages), std::min(bytes, other.bytes)};
  }
};

struct Opening {
  bool resume = false;        ///< the session was open before
  std::uint32_t attempt = 0;  ///< rises with every connection of the session
  SessionId session{};
  Limits limits;
};

struct Opened {
  std::uint32_t attempt = 0;  ///< that it answers
  Limits limits;
};

void encode_header(const Header &header, std::span<std::byte, kHeaderBytes> bytes);
/// Empty: no message of a channel.
std::optional<Header> decode_header(std::span<const std::byte> message);

std::vector<std::byte> encode_opening(const Opening &opening);
/// Of what follows the header. kUnsupported: another version. kBadMessage.
Result<Opening> decode_opening(std::span<const std::byte> body);
std::vector<std::byte> encode_opened(const Opened &opened);
Result<Opened> decode_opened(std::span<const std::byte> body);

}  // namespace nnti::channel
