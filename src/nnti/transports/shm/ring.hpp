// SPDX-License-Identifier: BSD-3-Clause
// A ring of messages from one writer to one reader in shared memory.
//
// Design notes. The reader polls the header of the next message in place, so that a message costs one cache line's
// transfer, not two as with a tail index. Stale bytes must not look like a header: before the writer publishes a
// message, it clears the word where the following header will be. A writer therefore needs one free slot beyond its
// message. The reader copies a message out before anyone looks at it: what the peer changes afterwards changes nothing.
// Slots are given back by the quarter ring: the line that holds `consumed` then moves rarely.
//
// A header: bits 0-31 the payload's size, 32-39 the kind (not 0), 40-47 the message's kind for the endpoint, the rest
// 0. The payload begins right behind it and runs over the following slots, whole, headers included, wrapping round.
#pragma once

#include "nnti/transport.hpp"
#include "nnti/transports/shm/layout.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

namespace nnti::shm {

enum class Kind : std::uint8_t { kMessage = 1, kRelayGet = 2, kRelayPut = 3, kRelayDone = 4 };
inline constexpr std::uint8_t kLastKind = 4;
inline constexpr std::size_t kHeaderBytes = sizeof(std::uint64_t);
inline constexpr std::size_t kRingBytes = kRingSlots * kSlotBytes;
inline constexpr std::size_t kReturnSlots = kRingSlots / 4;

inline std::size_t slots_for(std::size_t payload_bytes) {
  return (kHeaderBytes + payload_bytes + kSlotBytes - 1) / kSlotBytes;
}

// The largest message and its clear slot fit beside everything that a reader may hold back.
static_assert((kHeaderBytes + kMaxMessageBytes) / kSlotBytes + 2 <= kRingSlots - kReturnSlots);

class RingWriter {
 public:
  enum class Outcome { kSent, kNoCredit, kBroken };

  explicit RingWriter(Lane &lane) : lane_(lane) {}

  /// kBroken: the reader claims to have consumed what was never sent.
  Outcome write(Kind kind, std::span<const std::byte> payload, MessageKind message_kind = MessageKind::kUser) {
    auto slots = slots_for(payload.size());
    if (auto room = make_room(slots + 1); room != Outcome::kSent) return room;
    copy_in(next_ * kSlotBytes + kHeaderBytes, payload);
    header(next_ + slots).store(0, std::memory_order_relaxed);
    auto word =
        payload.size() | static_cast<std::uint64_t>(kind) << 32 | static_cast<std::uint64_t>(message_kind) << 40;
    // seq_cst: ordered before the look at the reader's sleep_epoch that follows.
    header(next_).store(word, std::memory_order_seq_cst);
    next_ += slots;
    return Outcome::kSent;
  }
  /// True if a write was refused for want of slots, and there are more now.
  bool has_new_credit() const { return starves_ && lane_.consumed.load(std::memory_order_seq_cst) != consumed_; }

 private:
  std::atomic<std::uint64_t> &header(std::uint64_t slot) { return lane_.ring[slot % kRingSlots].header; }

  Outcome make_room(std::size_t slots) {
    if (next_ - consumed_ + slots <= kRingSlots) return Outcome::kSent;
    if (!refresh()) return Outcome::kBroken;
    if (next_ - consumed_ + slots > kRingSlots) {
      starves_ = true;
      lane_.sender_starves.store(1, std::memory_order_seq_cst);
      if (!refresh()) return Outcome::kBroken;
      if (next_ - consumed_ + slots > kRingSlots) return Outcome::kNoCredit;
    }
    if (starves_) lane_.sender_starves.store(0, std::memory_order_relaxed);
    starves_ = false;
    return Outcome::kSent;
  }

  bool refresh() {
    consumed_ = lane_.consumed.load(std::memory_order_seq_cst);
    return next_ - consumed_ <= kRingSlots;
  }

  void copy_in(std::size_t offset, std::span<const std::byte> payload) {
    if (payload.empty()) return;
    auto *ring = reinterpret_cast<std::byte *>(lane_.ring);
    offset %= kRingBytes;
    auto first = std::min(payload.size(), kRingBytes - offset);
    std::memcpy(ring + offset, payload.data(), first);
    if (first < payload.size()) std::memcpy(ring, payload.data() + first, payload.size() - first);
  }

  Lane &lane_;
  std::uint64_t next_ = 0, consumed_ = 0;
  bool starves_ = false;
};

class RingReader {
 public:
  struct Message {
    Kind kind;
    MessageKind message_kind;
    std::size_t size_bytes;
  };

  explicit RingReader(Lane &lane) : lane_(lane) {}

  bool ready() const { return lane_.ring[next_ % kRingSlots].header.load(std::memory_order_seq_cst) != 0; }

  /// Copies the next message to `buffer`; ready() must be true. Empty: what is there is no message.
  std::optional<Message> read(std::span<std::byte, kMaxMessageBytes> buffer) {
    auto word = lane_.ring[next_ % kRingSlots].header.load(std::memory_order_acquire);
    auto size = static_cast<std::size_t>(word & 0xffffffffu);
    auto kind = word >> 32 & 0xff, message_kind = word >> 40;
    if (kind == 0 || kind > kLastKind || message_kind > kMaxMessageKind || size > kMaxMessageBytes) return std::nullopt;
    copy_out(next_ * kSlotBytes + kHeaderBytes, buffer.first(size));
    next_ += slots_for(size);
    return Message{static_cast<Kind>(kind), static_cast<MessageKind>(message_kind), size};
  }
  /// Gives consumed slots back if it is time to. True: they were, and the writer waits for them.
  bool give_back() {
    if (next_ - given_back_ < kReturnSlots) return false;
    given_back_ = next_;
    lane_.consumed.store(next_, std::memory_order_seq_cst);
    return lane_.sender_starves.load(std::memory_order_seq_cst) != 0;
  }

 private:
  void copy_out(std::size_t offset, std::span<std::byte> target) const {
    const auto *ring = reinterpret_cast<const std::byte *>(lane_.ring);
    offset %= kRingBytes;
    auto first = std::min(target.size(), kRingBytes - offset);
    std::memcpy(target.data(), ring + offset, first);
    if (first < target.size()) std::memcpy(target.data() + first, ring, target.size() - first);
  }

  Lane &lane_;
  std::uint64_t next_ = 0, given_back_ = 0;
};

}  // namespace nnti::shm
