// SPDX-License-Identifier: BSD-3-Clause
// What two sealed transports say to each other; README.md has the bytes.
#pragma once

#include "nnti/sealing/cipher.hpp"
#include "nnti/transport/transport.hpp"

#include <cstring>
#include <optional>

namespace nnti::sealing {

/// The kinds that the transport below carries.
inline constexpr auto kOpening = static_cast<MessageKind>(29);
inline constexpr auto kRecord = static_cast<MessageKind>(28);
/// The kinds within records that are the seal's own; all others are those of above.
inline constexpr auto kBulkRequest = static_cast<MessageKind>(27);
inline constexpr auto kBulkDone = static_cast<MessageKind>(26);

inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::size_t kChunkBytes = 128 << 10;
inline constexpr std::size_t kMaxChunks = 4;  ///< that one side has under way
/// The record's number, the kind, the tag.
inline constexpr std::size_t kRecordOverhead = sizeof(std::uint64_t) + 1 + sizeof(Tag);

struct Opening {
  std::uint32_t version = kVersion, zero = 0;
  Salt salt{};
  PublicKey key{};
};

/// Wants a chunk of a registered buffer sealed and written to `window`, or, `is_put`, read from there and opened.
struct BulkRequest {
  std::uint64_t operation = 0;
  std::uint64_t key = 0, offset = 0;  ///< of the registered buffer
  std::uint32_t slot = 0, size_bytes = 0;
  std::uint32_t is_put = 0, zero = 0;
  std::uint64_t number = 0;  ///< is_put: under which it is sealed
  Tag tag{};
  std::uint64_t window_key = 0, window_address = 0, window_bytes = 0, window_location = 0;
  std::uint32_t window_slot = 0, window_rights = 0;
};

struct BulkDone {
  std::uint64_t operation = 0;
  std::uint64_t number = 0;  ///< of a get
  Tag tag{};
  std::uint32_t code = 0, zero = 0;
};

template <class T> std::span<const std::byte> bytes_of(const T &value) { return std::as_bytes(std::span(&value, 1)); }
template <class T> std::optional<T> decode(std::span<const std::byte> message) {
  if (message.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, message.data(), sizeof value);
  return value;
}

}  // namespace nnti::sealing
