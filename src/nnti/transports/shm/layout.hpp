// SPDX-License-Identifier: BSD-3-Clause
// What processes share: the layouts of an endpoint's table, of a mailbox and of a shared queue. Everything in them that
// a peer writes is untrusted. README.md gives them byte by byte.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace nnti::shm {

inline constexpr std::uint32_t kLayoutVersion = 7;
inline constexpr std::size_t kSlotBytes = 64;  ///< a cache line
inline constexpr std::size_t kBounceBytes = 64 << 10;
inline constexpr std::uint32_t kTableEntries = 65536;
inline constexpr std::uint32_t kSeats = 16384;                   ///< the most connections of one endpoint
inline constexpr std::uint64_t kMinSlots = 8, kMaxSlots = 4096;  ///< of a mailbox; a power of two

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared memory needs lock-free atomics");

// --- an endpoint's table ----------------------------------------------------------------------------------------------

/// A registration, as peers read it. `key` is 0 while the entry is free; it is written last at registration, cleared
/// first at its end, and never used twice: who reads the same key before and after the other fields has read them
/// whole.
struct alignas(32) TableEntry {
  std::atomic<std::uint64_t> key, address, size_bytes;
  std::atomic<std::uint32_t> rights, is_shared;  ///< is_shared: made by Endpoint::allocate()
};

/// What the owner says to the peer of one connection.
struct alignas(kSlotBytes) ConnectionLine {
  std::atomic<std::uint64_t> consumed;  ///< slots of the peer's mailbox that it may write again
  std::atomic<std::uint32_t> starves;   ///< 1: the owner waits for room; ring its doorbell when there is more
};

/// In a sleep epoch: its owner sleeps often. Who has published a message passes a full fence before he reads the epoch
/// anew, so that the owner needs no heavy_fence() each time.
inline constexpr std::uint64_t kSleepsOften = std::uint64_t{1} << 63;

/// One for each endpoint; written by its owner, mapped by peers for reading.
struct EndpointTable {
  /// Odd while the owner sleeps, or is about to; its doorbell must then be rung. Perhaps with kSleepsOften.
  alignas(64) std::atomic<std::uint64_t> sleep_epoch;
  /// transfer_mark() of the buffer that the owner reads or writes now; 0: none.
  alignas(64) std::atomic<std::uint64_t> transfer;
  /// Entries of the owner's shared queue that may be claimed again: those before this number, one round on.
  alignas(64) std::atomic<std::uint64_t> queue_consumed;
  /// How many entries one sender may have under way in it.
  std::atomic<std::uint64_t> queue_bound;
  ConnectionLine lines[kSeats];
  TableEntry entries[kTableEntries];
};

static_assert(offsetof(EndpointTable, lines) == 192 && offsetof(EndpointTable, entries) == 1048768);

/// Names a buffer in a transfer: its slot, and its owner by the random number of its hello.
inline std::uint64_t transfer_mark(std::uint64_t owner, std::uint32_t slot) {
  static_assert(kTableEntries == 1 << 16);
  return std::uint64_t{1} << 63 | owner << 16 | (slot & 0xffff);
}

// --- a mailbox --------------------------------------------------------------------------------------------------------

struct alignas(kSlotBytes) Slot {
  std::atomic<std::uint64_t> header;  ///< of the message that begins here; see ring.hpp
  std::byte payload[kSlotBytes - sizeof(std::uint64_t)];
};
inline constexpr std::size_t kSlotPayload = sizeof(Slot::payload);

/// What a mailbox of the uGNI paper has beside its slots: with 64, 32 and 8 slots they are 4672, 2624 and 1088 bytes.
/// Ours has its control in the two endpoints' tables.
inline constexpr std::size_t kMailboxControlBytes = 576;
inline constexpr std::size_t mailbox_bytes(std::uint64_t slots) { return kMailboxControlBytes + slots * kSlotBytes; }
/// The mailbox shrinks as the job grows: uGNI paper, section 3.
inline constexpr std::size_t mailbox_bytes_for(std::int64_t job_size) {
  return job_size <= 1024 ? mailbox_bytes(64) : job_size <= 16384 ? mailbox_bytes(32) : mailbox_bytes(8);
}
/// The slots of a mailbox of so many bytes, control included.
inline constexpr std::uint64_t slots_in(std::uint64_t mailbox_size_bytes) {
  return std::min(std::bit_floor((mailbox_size_bytes - kMailboxControlBytes) / kSlotBytes), kMaxSlots);
}
static_assert(mailbox_bytes(64) == 4672 && mailbox_bytes(32) == 2624 && mailbox_bytes(8) == 1088);
inline constexpr std::size_t ring_bytes(std::uint64_t slots) { return slots * kSlotBytes; }

/// One direction of a connection, where it is mapped here. `ring` and `sender_starves` are the sender's memory,
/// `consumed` is the receiver's.
struct Mailbox {
  std::atomic<std::uint64_t> *consumed = nullptr;
  std::atomic<std::uint32_t> *sender_starves = nullptr;
  Slot *ring = nullptr;
  std::uint64_t slots = 0;
};

// --- a shared queue ---------------------------------------------------------------------------------------------------

inline constexpr std::size_t kQueueEntryBytes = 128;
inline constexpr std::uint64_t kMinQueueEntries = 16, kMaxQueueEntries = 65536;  ///< a power of two
inline constexpr std::int64_t kDefaultQueueEntries = 2048;

struct alignas(kQueueEntryBytes) QueueEntry {
  std::atomic<std::uint64_t> state;  ///< who holds it, in which round; see shared_queue.hpp
  std::uint64_t header;              ///< of the message
  std::byte payload[kQueueEntryBytes - 2 * sizeof(std::uint64_t)];
};
inline constexpr std::size_t kQueuePayload = sizeof(QueueEntry::payload);

/// What precedes the entries.
struct QueueControl {
  alignas(64) std::atomic<std::uint64_t> tail_hint;  ///< by senders: about where the next free entry is
  alignas(64) std::atomic<std::uint32_t> starving;   ///< by senders: 1: look whose line says `starves`
};
static_assert(sizeof(QueueControl) == 128);

inline constexpr std::size_t queue_bytes(std::uint64_t entries) {
  return sizeof(QueueControl) + entries * sizeof(QueueEntry);
}

/// A queue where it is mapped here. `consumed` and `bound` are the receiver's memory.
struct Queue {
  QueueControl *control = nullptr;
  QueueEntry *ring = nullptr;
  std::uint64_t entries = 0;
  std::atomic<std::uint64_t> *consumed = nullptr, *bound = nullptr;
};
inline Queue queue_at(std::byte *base, std::uint64_t entries, EndpointTable &receiver) {
  return {reinterpret_cast<QueueControl *>(base), reinterpret_cast<QueueEntry *>(base + sizeof(QueueControl)), entries,
          &receiver.queue_consumed, &receiver.queue_bound};
}

// --- the bootstrap ----------------------------------------------------------------------------------------------------

enum class ChannelKind : std::uint32_t { kMailbox = 0, kSharedQueue = 1 };

/// The bootstrap's blob; the descriptors with it are the table, the doorbell, and, from an accepting side with a shared
/// queue, the queue.
struct HelloBlob {
  std::uint32_t layout_version = kLayoutVersion;
  std::uint32_t cma_allowed = 1;
  std::uint64_t probe_address = 0;  ///< of a word in the sender's memory that holds `probe_value`
  std::uint64_t probe_value = 0;
  std::uint32_t channel = 0;           ///< ChannelKind; from the connecting side
  std::uint32_t slots = 0;             ///< of each mailbox; from the connecting side
  std::uint32_t asymmetric_fence = 0;  ///< 1: the sender takes part in membarrier(2); see base/fence.hpp
  std::uint32_t seat = 0;              ///< of the connection at the sender; from the accepting side
  std::uint32_t queue_entries = 0;     ///< of the sender's queue; from the accepting side
  std::uint32_t zero = 0;
};

/// The body of a transport page: memory whose descriptor goes with it.
struct Announcement {
  std::uint64_t key = 0;
  std::uint32_t slot = 0;
  std::uint32_t number = 0;
};
inline constexpr std::uint32_t kBounceSlot = ~0u;   ///< what the sender relays bulk data through
inline constexpr std::uint32_t kMailboxSlot = ~1u;  ///< the sender's mailbox
inline constexpr std::uint32_t kSeatSlot = ~2u;     ///< no memory: `number` is the sender's seat
inline constexpr std::uint32_t kQueueSlot = ~3u;    ///< the sender's queue of `key` entries; `number` as kSeatSlot
inline constexpr std::uint32_t kGivenSlot = ~4u;    ///< no memory: a descriptor of the application's, given under `key`

}  // namespace nnti::shm
