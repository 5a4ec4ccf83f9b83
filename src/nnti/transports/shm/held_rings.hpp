// SPDX-License-Identifier: BSD-3-Clause
// Rings at the doors of peers who sleep, that wait until what came together from them is answered.
//
// Design notes. Who is woken by the first of sixteen answers finds one, and sleeps again; where the cores are few, he
// takes the core from the very one who is about to give the others. So a ring waits while its peer has more to get,
// until the next poll. A process that does not come back to poll is not relied on: see Pusher, Doubts.
#pragma once

#include "nnti/framed/pusher.hpp"

#include <vector>

namespace nnti::shm {

/// Of a transport. Its owner's thread, but for what the Pusher calls.
class HeldRings final : public Held {
 public:
  /// The ring waits. False: not now; ring at once. `self` is this one.
  static bool hold(const std::shared_ptr<HeldRings> &self, Pusher &pusher, int doorbell);
  bool any() const { return any_; }
  /// Rings them all.
  void release();
  /// The doorbell is about to be closed.
  void forget(int doorbell);

 private:
  bool anything_waits() const override { return !doorbells_.empty(); }
  void push() override;

  std::vector<int> doorbells_;  ///< under the mutex
  bool any_ = false, may_hold_ = true;
  Doubts doubts_;
  Lateness lateness_;
};

void ring(int doorbell);

}  // namespace nnti::shm
