// SPDX-License-Identifier: BSD-3-Clause
// Records that stay in place while UCX, or a callback, holds them, and are used again afterwards.
#pragma once

#include "nnti/transports/ucx/worker.hpp"

#include <array>
#include <deque>
#include <vector>

namespace nnti::ucx {

/// A frame that is being sent, or that has arrived.
struct FrameSlot : Work {
  std::array<std::byte, kMaxFrameBytes> bytes;
};

struct ChunkSlot : Work {
  ChunkHeader header;
};

template <class Slot> class Pool {
 public:
  Slot &take() {
    if (free_.empty()) return slots_.emplace_back();
    Slot *slot = free_.back();
    free_.pop_back();
    return *slot;
  }
  void give_back(Slot &slot) { free_.push_back(&slot); }

 private:
  std::deque<Slot> slots_;
  std::vector<Slot *> free_;
};

}  // namespace nnti::ucx
