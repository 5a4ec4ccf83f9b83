// SPDX-License-Identifier: BSD-3-Clause
// What processes share: the layouts of an endpoint's page and table, and of a connection's segment. Everything in them
// that a peer writes is untrusted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nnti::shm {

inline constexpr std::uint32_t kLayoutVersion = 2;
inline constexpr std::size_t kSlotBytes = 64;  ///< a cache line
inline constexpr std::size_t kBounceBytes = 64 << 10;
inline constexpr std::uint32_t kTableEntries = 65536;
inline constexpr std::uint64_t kMinSlots = 8, kMaxSlots = 4096;  ///< of a mailbox; a power of two

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared memory needs lock-free atomics");

/// A registration, as peers read it. `key` is 0 while the entry is free; it is written last at registration, cleared
/// first at its end, and never used twice: who reads the same key before and after the other fields has read them
/// whole.
struct alignas(32) TableEntry {
  std::atomic<std::uint64_t> key, address, size_bytes;
  std::atomic<std::uint32_t> rights, is_shared;  ///< is_shared: made by Endpoint::allocate()
};

/// One for each endpoint; written by its owner, mapped by peers for reading.
struct EndpointTable {
  /// Odd while the owner sleeps, or is about to; its doorbell must then be rung.
  alignas(64) std::atomic<std::uint64_t> sleep_epoch;
  alignas(64) TableEntry entries[kTableEntries];
};

struct alignas(kSlotBytes) Slot {
  std::atomic<std::uint64_t> header;  ///< of the message that begins here; see ring.hpp
  std::byte payload[kSlotBytes - sizeof(std::uint64_t)];
};
inline constexpr std::size_t kSlotPayload = sizeof(Slot::payload);

/// What precedes the slots of a mailbox: with 64, 32 and 8 slots it has the 4672, 2624 and 1088 bytes of the uGNI
/// paper's.
struct MailboxControl {
  alignas(64) std::atomic<std::uint64_t> consumed;        ///< by the receiver: slots that may be written again
  alignas(64) std::atomic<std::uint32_t> sender_starves;  ///< by the sender: ring my doorbell when slots become free
  alignas(64) std::atomic<std::uint64_t> transfer;        ///< by the sender: 1 + table slot that it reads or writes now
  std::byte reserved[6 * kSlotBytes];
};
static_assert(sizeof(MailboxControl) == 576);

inline constexpr std::size_t mailbox_bytes(std::uint64_t slots) { return sizeof(MailboxControl) + slots * kSlotBytes; }

/// One direction of a connection, where it is mapped here.
struct Mailbox {
  MailboxControl *control = nullptr;
  Slot *ring = nullptr;
  std::uint64_t slots = 0;
};

/// A connection's segment: two mailboxes. The first belongs to (is written by) the side that connected, the second to
/// the one that accepted.
inline constexpr std::size_t segment_bytes(std::uint64_t slots) { return 2 * mailbox_bytes(slots); }
inline Mailbox mailbox_at(std::byte *segment, int side, std::uint64_t slots) {
  auto *base = segment + (side == 0 ? 0 : mailbox_bytes(slots));
  return {reinterpret_cast<MailboxControl *>(base), reinterpret_cast<Slot *>(base + sizeof(MailboxControl)), slots};
}

/// The bootstrap's blob; the descriptors with it are the table, the doorbell, and, from the connecting side, the
/// segment.
struct HelloBlob {
  std::uint32_t layout_version = kLayoutVersion;
  std::uint32_t cma_allowed = 1;
  std::uint64_t probe_address = 0;  ///< of a word in the sender's memory that holds `probe_value`
  std::uint64_t probe_value = 0;
  std::uint32_t slots = 0;             ///< of each mailbox; from the connecting side
  std::uint32_t asymmetric_fence = 0;  ///< 1: the sender takes part in membarrier(2); see fence.hpp
};

}  // namespace nnti::shm
