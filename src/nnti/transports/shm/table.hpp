// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's registrations in shared memory: its owner's side, and the one of peers, who look a buffer up at the
// moment of each put and get.
#pragma once

#include "nnti/transport/allocation.hpp"
#include "nnti/transport/transport.hpp"
#include "nnti/transports/shm/layout.hpp"

#include <base/clock.hpp>

#include <array>
#include <vector>

namespace nnti::shm {

/// What the table says about one registration.
struct Registered {
  std::uint64_t address = 0, size_bytes = 0;
  Rights rights = Rights::kNone;
  bool is_shared = false;
};

/// Empty if `key` is not what the entry holds.
std::optional<Registered> look_up(const EndpointTable &table, std::uint32_t slot, std::uint64_t key);

class OwnTable {
 public:
  static Result<OwnTable> make();

  int fd() const { return memory_.fd.get(); }
  EndpointTable &table() const { return *reinterpret_cast<EndpointTable *>(memory_.mapping.base()); }
  /// kNoMemory: the table is full.
  Result<RemoteBuffer> add(const MemoryRegion &region);
  /// Refuses the key from now on. The slot is kept until release().
  void revoke(std::uint32_t slot);
  void release(std::uint32_t slot) { free_.push_back(slot); }
  /// Tells peers to ring, or not to. Who sleeps then looks once more: either he sees what was published before, or its
  /// sender that he sleeps.
  void sleep(bool has_peers);
  void awake() { table().sleep_epoch.fetch_add(1, std::memory_order_seq_cst); }

 private:
  std::uint64_t fresh_key();

  SharedMemory memory_;
  std::vector<std::uint32_t> free_;     ///< used again last in, first out: few pages of the table are ever touched
  nessie::Clock::time_point slept_at_;  ///< last
  std::uint32_t used_ = 0;
  std::array<std::uint64_t, 64> keys_{};
  std::size_t keys_left_ = 0;
};

}  // namespace nnti::shm
