// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/table.hpp"

#include "base/fence.hpp"

#include <fmt/core.h>

#include <utility>

namespace nnti::shm {
namespace {

/// Whoever sleeps again within this time does so often.
constexpr std::chrono::milliseconds kOften{5};

}  // namespace

std::optional<Registered> look_up(const EndpointTable &table, std::uint32_t slot, std::uint64_t key) {
  if (slot >= kTableEntries || key == 0) return std::nullopt;
  const auto &entry = table.entries[slot];
  if (entry.key.load(std::memory_order_seq_cst) != key) return std::nullopt;
  Registered found;
  found.address = entry.address.load(std::memory_order_acquire);
  found.size_bytes = entry.size_bytes.load(std::memory_order_acquire);
  found.rights = static_cast<Rights>(entry.rights.load(std::memory_order_acquire));
  found.is_shared = entry.is_shared.load(std::memory_order_acquire) != 0;
  if (entry.key.load(std::memory_order_relaxed) != key) return std::nullopt;
  return found;
}

Result<OwnTable> OwnTable::make() {
  OwnTable table;
  auto memory = make_shared_memory("nessie-endpoint", sizeof(EndpointTable), Peers::kMayOnlyRead);
  if (!memory.ok()) return memory.error();
  table.memory_ = std::move(*memory);
  return table;
}

void OwnTable::sleep(bool has_peers) {
  const auto now = nessie::Clock::now();
  const bool soon = now - std::exchange(slept_at_, now) < kOften;
  const bool often = has_peers && soon;
  auto &epoch = table().sleep_epoch;
  const auto before = epoch.load(std::memory_order_relaxed);
  epoch.store(((before + 1) & ~kSleepsOften) | (often ? kSleepsOften : 0), std::memory_order_seq_cst);
  // Once senders have seen that they are to fence, they do; what is looked at next must not be older either.
  if (often && (before & kSleepsOften) != 0)
    std::atomic_thread_fence(std::memory_order_seq_cst);
  else if (has_peers)
    nessie::heavy_fence();
}

Result<RemoteBuffer> OwnTable::add(const MemoryRegion &region) {
  if (free_.empty() && used_ == kTableEntries)
    return Error{Code::kNoMemory, fmt::format("{} buffers are registered; drop some first", kTableEntries)};
  std::uint32_t slot = used_;
  if (free_.empty()) {
    ++used_;
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  RemoteBuffer buffer{fresh_key(),  reinterpret_cast<std::uint64_t>(region.bytes.data()), region.bytes.size(), 0, slot,
                      region.rights};
  auto &entry = table().entries[slot];
  entry.address.store(buffer.address, std::memory_order_relaxed);
  entry.size_bytes.store(buffer.size_bytes, std::memory_order_relaxed);
  entry.rights.store(static_cast<std::uint32_t>(region.rights), std::memory_order_relaxed);
  entry.is_shared.store(region.memfd >= 0 ? 1 : 0, std::memory_order_relaxed);
  entry.key.store(buffer.key, std::memory_order_seq_cst);
  return buffer;
}

void OwnTable::revoke(std::uint32_t slot) { table().entries[slot].key.store(0, std::memory_order_seq_cst); }

std::uint64_t OwnTable::fresh_key() {
  std::uint64_t key = 0;
  while (key == 0) {
    if (keys_left_ == 0) {
      nessie::random_bytes(std::as_writable_bytes(std::span(keys_)));
      keys_left_ = keys_.size();
    }
    key = keys_[--keys_left_];
  }
  return key;
}

}  // namespace nnti::shm
