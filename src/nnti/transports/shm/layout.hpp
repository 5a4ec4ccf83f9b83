// SPDX-License-Identifier: BSD-3-Clause
// What processes share: the layouts of an endpoint's page and table, and of a connection's segment. Everything in them
// that a peer writes is untrusted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nnti::shm {

inline constexpr std::uint32_t kLayoutVersion = 1;
inline constexpr std::size_t kSlotBytes = 64;  ///< a cache line
inline constexpr std::size_t kRingSlots = 512;
inline constexpr std::size_t kMaxMessageBytes = 8192;
inline constexpr std::size_t kBounceBytes = 64 << 10;
inline constexpr std::uint32_t kTableEntries = 65536;

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

/// One direction of a connection, and what its sender writes besides.
struct Lane {
  alignas(64) std::atomic<std::uint64_t> consumed;        ///< by the receiver: slots that may be written again
  alignas(64) std::atomic<std::uint32_t> sender_starves;  ///< by the sender: ring my doorbell when slots become free
  alignas(64) std::atomic<std::uint64_t> transfer;        ///< by the sender: 1 + table slot that it reads or writes now
  alignas(64) Slot ring[kRingSlots];
  alignas(64) std::byte bounce[kBounceBytes];  ///< for the sender's puts and gets where CMA is forbidden
};

/// One for each connection. Lane 0 belongs to the side that connected, lane 1 to the one that accepted.
struct Segment {
  Lane lanes[2];
};

/// The bootstrap's blob; the descriptors with it are the table, the doorbell, and, from the connecting side, the
/// segment.
struct HelloBlob {
  std::uint32_t layout_version = kLayoutVersion;
  std::uint32_t cma_allowed = 1;
  std::uint64_t probe_address = 0;  ///< of a word in the sender's memory that holds `probe_value`
  std::uint64_t probe_value = 0;
};

}  // namespace nnti::shm
