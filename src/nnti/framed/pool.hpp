// SPDX-License-Identifier: BSD-3-Clause
// Records that stay in place while a library, or a callback, holds them, and are used again afterwards.
#pragma once

#include <deque>
#include <vector>

namespace nnti::framed {

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

}  // namespace nnti::framed
