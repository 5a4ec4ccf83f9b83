// SPDX-License-Identifier: BSD-3-Clause
// The ring of messages in a mailbox, from one writer to one reader.
//
// Design notes. The reader polls the header of the next message in place, so that a message costs one cache line's
// transfer, not two as with a tail index. Every header carries the number of its slot's use, counted from the beginning
// of the connection: what an earlier round left there is never taken for a message, and nothing needs to be cleared
// (clearing the next header would fetch its cache line before the message could leave). For the same reason the first
// word of every slot is kept for headers, also where a message runs over several slots.
// The reader copies a message out before anyone looks at it: what the peer changes afterwards changes nothing. Slots
// are given back by the quarter ring: the line that holds `consumed` then moves rarely.
//
// A header: bits 0-15 the payload's size, 16-23 the kind (not 0), 24-31 the message's kind for the endpoint, 32-63 the
// slot's number plus 1, modulo 2^32. The payload fills the rest of the slot, then that of the following ones.
#pragma once

#include "nnti/transport/transport.hpp"
#include "nnti/transports/shm/layout.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

namespace nnti::shm {

enum class Kind : std::uint8_t { kMessage = 1, kRelayGet = 2, kRelayPut = 3, kRelayDone = 4 };
inline constexpr std::uint8_t kLastKind = 4;
inline constexpr std::size_t kMaxInPlaceBytes = 4096;  ///< in mailboxes however large

/// A quarter of a mailbox: the largest message, and what the reader may hold back, fit beside each other.
inline std::size_t max_in_place_bytes(std::uint64_t slots) {
  return std::min<std::size_t>(slots / 4 * kSlotPayload, kMaxInPlaceBytes);
}
static_assert(kMinSlots / 4 * kSlotPayload >= kMinMessageBytes);

inline std::uint64_t slots_for(std::size_t payload_bytes) {
  return payload_bytes <= kSlotPayload ? 1 : (payload_bytes + kSlotPayload - 1) / kSlotPayload;
}

/// Copies a small message whose words its sender has just written, one by one: a load that spans several of them would
/// wait until they have left the processor.
inline void copy_fresh(std::byte *to, std::span<const std::byte> from) {
  using Word = std::uint32_t;  // XDR's
  __asm__("" : "+r"(to));      // the compiler warns of writes behind a slot that it cannot prove not to happen
  const auto *at = from.data();
  auto left = from.size();
  for (; left >= sizeof(Word); left -= sizeof(Word), at += sizeof(Word), to += sizeof(Word)) {
    Word word = 0;
    std::memcpy(&word, at, sizeof word);
    __asm__("" : "+r"(word));  // not several at once
    std::memcpy(to, &word, sizeof word);
  }
  for (; left != 0; --left) *to++ = *at++;
}

/// Where slot number `number` is, and what its header says in this round.
struct SlotPlace {
  static Slot &of(const Mailbox &mailbox, std::uint64_t number) { return mailbox.ring[number & (mailbox.slots - 1)]; }
  static std::uint32_t mark(std::uint64_t number) { return static_cast<std::uint32_t>(number + 1); }
};

/// kNoCredit: not now. kBroken: the reader claims to have consumed what was never sent.
enum class Outcome { kSent, kNoCredit, kBroken };

struct Message {
  Kind kind;
  MessageKind message_kind;
  std::size_t size_bytes;
};

class RingWriter {
 public:
  explicit RingWriter(const Mailbox &mailbox) : mailbox_(mailbox) {}

  /// Publishes a message. Who must be seen by a reader that falls asleep fences afterwards.
  Outcome write(Kind kind, std::span<const std::byte> payload, MessageKind message_kind = MessageKind::kUser) {
    auto slots = slots_for(payload.size());
    if (auto room = make_room(slots); room != Outcome::kSent) return room;
    copy_in(payload);
    publish(kind, message_kind, payload.size(), slots);
    return Outcome::kSent;
  }
  /// The same for a message that fits one slot, if there plainly is one. False: that is for write() to say.
  bool try_write(std::span<const std::byte> payload, MessageKind message_kind) {
    if (payload.size() > kSlotPayload || next_ - consumed_ >= mailbox_.slots) return false;
    copy_fresh(SlotPlace::of(mailbox_, next_).payload, payload);
    publish(Kind::kMessage, message_kind, payload.size(), 1);
    return true;
  }
  /// True if a write was refused, and none has succeeded since.
  bool starves() const { return starves_; }
  /// True if a write was refused for want of slots, and there are more now.
  bool has_new_credit() const { return starves_ && mailbox_.consumed->load(std::memory_order_seq_cst) != consumed_; }

 private:
  void publish(Kind kind, MessageKind message_kind, std::size_t size_bytes, std::uint64_t slots) {
    const auto word = size_bytes | static_cast<std::uint64_t>(kind) << 16 |
                      static_cast<std::uint64_t>(message_kind) << 24 |
                      static_cast<std::uint64_t>(SlotPlace::mark(next_)) << 32;
    SlotPlace::of(mailbox_, next_).header.store(word, std::memory_order_release);
    next_ += slots;
  }

  Outcome make_room(std::uint64_t slots) {
    if (next_ - consumed_ + slots <= mailbox_.slots) [[likely]]
      return Outcome::kSent;
    if (!refresh()) return Outcome::kBroken;
    if (next_ - consumed_ + slots > mailbox_.slots) {
      starves_ = true;
      mailbox_.sender_starves->store(1, std::memory_order_seq_cst);
      if (!refresh()) return Outcome::kBroken;
      if (next_ - consumed_ + slots > mailbox_.slots) return Outcome::kNoCredit;
    }
    if (starves_) mailbox_.sender_starves->store(0, std::memory_order_relaxed);
    starves_ = false;
    return Outcome::kSent;
  }

  bool refresh() {
    consumed_ = mailbox_.consumed->load(std::memory_order_seq_cst);
    return next_ - consumed_ <= mailbox_.slots;
  }

  void copy_in(std::span<const std::byte> payload) {
    for (auto number = next_; !payload.empty(); ++number) {
      auto part = payload.first(std::min(payload.size(), kSlotPayload));
      std::memcpy(SlotPlace::of(mailbox_, number).payload, part.data(), part.size());
      payload = payload.subspan(part.size());
    }
  }

  Mailbox mailbox_;
  std::uint64_t next_ = 0, consumed_ = 0;
  bool starves_ = false;
};

class RingReader {
 public:
  explicit RingReader(const Mailbox &mailbox) : mailbox_(mailbox) {}

  bool ready() const {
    return SlotPlace::of(mailbox_, next_).header.load(std::memory_order_acquire) >> 32 == SlotPlace::mark(next_);
  }

  /// Copies the next message to the beginning of `buffer`, and perhaps some bytes behind it; ready() must be true.
  /// Empty: what is there is no message.
  std::optional<Message> read(std::span<std::byte, kMaxInPlaceBytes> buffer) {
    auto word = SlotPlace::of(mailbox_, next_).header.load(std::memory_order_acquire);
    auto size = static_cast<std::size_t>(word & 0xffff);
    auto kind = word >> 16 & 0xff, message_kind = word >> 24 & 0xff;
    if (kind == 0 || kind > kLastKind || message_kind > kMaxMessageKind || size > max_in_place_bytes(mailbox_.slots))
      return std::nullopt;
    copy_out(buffer.first(size));
    next_ += slots_for(size);
    return Message{static_cast<Kind>(kind), static_cast<MessageKind>(message_kind), size};
  }
  /// Gives consumed slots back if it is time to. True: they were, and the writer waits for them.
  bool give_back() {
    if (next_ - given_back_ < mailbox_.slots / 4) [[likely]]
      return false;
    given_back_ = next_;
    mailbox_.consumed->store(next_, std::memory_order_seq_cst);
    return mailbox_.sender_starves->load(std::memory_order_seq_cst) != 0;
  }

 private:
  void copy_out(std::span<std::byte> target) const {
    if (target.size() <= kSlotPayload)  // all of the slot: its size is known when this is compiled
      return void(std::memcpy(target.data(), SlotPlace::of(mailbox_, next_).payload, kSlotPayload));
    for (auto number = next_; !target.empty(); ++number) {
      auto size = std::min(target.size(), kSlotPayload);
      std::memcpy(target.data(), SlotPlace::of(mailbox_, number).payload, size);
      target = target.subspan(size);
    }
  }

  Mailbox mailbox_;
  std::uint64_t next_ = 0, given_back_ = 0;
};

}  // namespace nnti::shm
