// SPDX-License-Identifier: BSD-3-Clause
// Buffers for frames, in slabs that the provider knows, and what libfabric's completions point back to.
#pragma once

#include "nnti/transports/ofi/fabric.hpp"
#include "nnti/transports/ofi/wire.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace nnti::ofi {

/// The context of an operation of libfabric. It must stay in place until the operation's completion.
struct Work {
  enum class Kind { kReceive, kSend, kTransfer };
  fi_context2 context{};  ///< the provider's; first, so that its address is ours
  Kind kind = Kind::kReceive;
};

/// One frame.
struct Slot : Work {
  std::byte *data = nullptr;
  void *descriptor = nullptr;
  std::uint64_t token = 0;  ///< kSend: ours of the connection that sends
};

class SlotPool {
 public:
  explicit SlotPool(Fabric &fabric) : fabric_(fabric) {}

  /// Null if the provider cannot register more memory.
  Slot *take() {
    if (free_.empty() && !grow()) return nullptr;
    Slot *slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(Slot *slot) { free_.push_back(slot); }

 private:
  static constexpr std::size_t kSlabSlots = 64;
  struct Slab {
    std::unique_ptr<std::byte[]> bytes;
    MemoryKey key;
  };

  bool grow() {
    const std::size_t slab_bytes = kSlabSlots * kMaxPostedFrameBytes;
    Slab slab{std::make_unique_for_overwrite<std::byte[]>(slab_bytes), {}};
    if (fabric_.cache() != nullptr) {
      auto key = fabric_.register_memory({slab.bytes.get(), slab_bytes}, FI_SEND | FI_RECV);
      if (!key.ok()) return false;
      slab.key = std::move(*key);
    }
    for (std::size_t i = 0; i < kSlabSlots; ++i) {
      Slot &slot = slots_.emplace_back();
      slot.data = slab.bytes.get() + i * kMaxPostedFrameBytes;
      slot.descriptor = slab.key.descriptor();
      free_.push_back(&slot);
    }
    slabs_.push_back(std::move(slab));
    return true;
  }

  Fabric &fabric_;
  std::vector<Slab> slabs_;
  std::deque<Slot> slots_;
  std::vector<Slot *> free_;
};

}  // namespace nnti::ofi
