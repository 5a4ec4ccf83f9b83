// SPDX-License-Identifier: BSD-3-Clause
// The queue into which all peers of an endpoint write: uGNI paper, section 3 (MSGQ). Many writers, one reader.
//
// Design notes. Entries have numbers, counted since the beginning; number n lies in entry n mod N, and n / N is its
// round. A writer claims the entry itself, by compare-and-swap on its state from the last round's to (this round,
// claimed, writer), and only then fills it and publishes it. So whoever is killed, at whatever instruction, leaves
// either an entry that nobody has claimed, or one that says who did: the reader skips that one when the writer's
// connection has ended. A tail index that writers fetch and add would leave a hole without a name.
// Entries are claimed in order: nobody claims n before n - 1 has been claimed. Where the next free one is, each writer
// guesses from its own last one; if that is taken, the control's hint helps, which is checked before it is used.
// The reader writes nothing into the entries: it says in its own table, which peers cannot write, up to which number it
// has consumed, and writers may claim one round on. A message of at most 48 bytes costs one cache line's transfer.
//
// Fairness: the reader sets a bound on the entries that one writer may have under way. Half the queue as long as nobody
// starves; otherwise so little that all who are active share half the queue, and the other half is free for those who
// starve (own_queue.cpp).
//
// A state: bits 0-1 are 1 while the entry is claimed, 2 when it is published; 2-31 the writer's seat; 32-63 the round,
// plus 1, modulo 2^32. A header: bits 0-15 the payload's size, 16-23 the kind, 24-31 the message's kind for the
// endpoint.
#pragma once

#include "nnti/transport/allocation.hpp"
#include "nnti/transports/shm/ring.hpp"

#include <bit>

namespace nnti::shm {

static_assert(kQueuePayload >= kMinMessageBytes);

/// What an entry's state says.
struct EntryState {
  static constexpr std::uint64_t kClaimed = 1, kPublished = 2, kStatusBits = 3;
  static constexpr std::uint32_t kSeatMask = (1u << 30) - 1;

  static std::uint64_t make(std::uint32_t round, std::uint32_t seat, std::uint64_t status) {
    return std::uint64_t{round} << 32 | std::uint64_t{seat & kSeatMask} << 2 | status;
  }
  static std::uint32_t round(std::uint64_t state) { return static_cast<std::uint32_t>(state >> 32); }
  static std::uint32_t seat(std::uint64_t state) { return static_cast<std::uint32_t>(state >> 2) & kSeatMask; }
  static std::uint64_t status(std::uint64_t state) { return state & kStatusBits; }
};

/// Where entry number `number` is, and which round that is.
struct EntryPlace {
  static QueueEntry &of(const Queue &queue, std::uint64_t number) { return queue.ring[number & (queue.entries - 1)]; }
  static std::uint32_t round(const Queue &queue, std::uint64_t number) {
    return static_cast<std::uint32_t>(number >> std::countr_zero(queue.entries)) + 1;
  }
};

/// A peer's queue. kBadMessage: its memory is not what it says.
Result<Mapping> map_queue(int memfd, std::uint64_t entries);

/// One sender's side; `seat` is its connection's at the receiver. `starves` is in the sender's memory.
class QueueWriter {
 public:
  QueueWriter(const Queue &queue, std::uint32_t seat, std::atomic<std::uint32_t> *starves)
      : queue_(queue), starves_word_(starves), seat_(seat) {}

  /// Publishes a message of at most kQueuePayload bytes. Who must be seen by a reader that falls asleep fences
  /// afterwards. kNoCredit: the queue is full, or this sender has its share under way; the reader has been told that
  /// there is somebody to ring, and must be woken if it sleeps.
  Outcome write(Kind kind, std::span<const std::byte> payload, MessageKind message_kind = MessageKind::kUser) {
    std::uint64_t number = 0;
    if (auto claimed = claim(number); claimed != Outcome::kSent) return claimed;
    auto &entry = EntryPlace::of(queue_, number);
    entry.header =
        payload.size() | static_cast<std::uint64_t>(kind) << 16 | static_cast<std::uint64_t>(message_kind) << 24;
    copy_fresh(entry.payload, payload);
    publish(number);
    return Outcome::kSent;
  }
  /// The first half of write(): entry `number` is ours until publish(). All in between is ours to write.
  Outcome claim(std::uint64_t &number);
  /// The second half.
  void publish(std::uint64_t number) {
    auto round = EntryPlace::round(queue_, number);
    EntryPlace::of(queue_, number)
        .state.store(EntryState::make(round, seat_, EntryState::kPublished), std::memory_order_release);
    if (number % kHintInterval == 0) queue_.control->tail_hint.store(number + 1, std::memory_order_relaxed);
  }
  bool starves() const { return starves_; }
  const Queue &queue() const { return queue_; }
  /// True if a write was refused for want of room, and there is more now.
  bool has_new_credit() const { return starves_ && queue_.consumed->load(std::memory_order_seq_cst) != consumed_; }

 private:
  static constexpr std::uint64_t kHintInterval = 8;  ///< the hint's cache line shall not move with every message
  Outcome try_claim(std::uint64_t &number);
  bool has_share();
  bool refresh();
  std::uint64_t find_start() const;
  bool is_taken(std::uint64_t number) const;
  void note_claim(std::uint64_t number);
  void say_starving();

  Queue queue_;
  std::atomic<std::uint32_t> *starves_word_;
  std::uint64_t next_ = 0;                   ///< after our last one
  std::uint64_t consumed_ = 0, bound_ = 0;   ///< as the reader said when we last looked
  std::uint64_t older_end_ = 0, newer_ = 0;  ///< of what we have under way: end of the older half, size of the newer
  std::uint32_t seat_;
  bool starves_ = false;
};

/// The receiver's side of the entries. It trusts nothing in them.
class QueueReader {
 public:
  /// kClaimed: not yet published by `seat`.
  enum class Look { kEmpty, kClaimed, kPublished, kBroken };
  struct Head {
    Look look;
    std::uint32_t seat;
  };

  explicit QueueReader(const Queue &queue) : queue_(queue) {}
  std::uint64_t next() const { return next_; }
  /// What the next entry is.
  Head look() const;
  /// Copies the next entry, which must be published, to `buffer`, and goes on to the one after it. Empty: what is there
  /// is no message.
  std::optional<Message> read(std::span<std::byte, kMaxInPlaceBytes> buffer);
  /// Goes on to the entry after the next one, whose writer will not publish it any more.
  void skip() { ++next_; }
  /// The number after the last entry that `seat` holds; next() if it holds none.
  std::uint64_t end_of(std::uint32_t seat) const;

 private:
  Queue queue_;
  std::uint64_t next_ = 0;
};

}  // namespace nnti::shm
