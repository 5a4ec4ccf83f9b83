// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/held_rings.hpp"

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace nnti::shm {
void ring(int doorbell) {
  const std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(doorbell, &one, sizeof one);
}

bool HeldRings::hold(const std::shared_ptr<HeldRings> &self, Pusher &pusher, int doorbell) {
  if (!self->may_hold_ || self->doubts_.any()) return false;
  bool is_to_be_watched = false;
  {
    const std::lock_guard guard(self->mutex_);
    is_to_be_watched = self->begin_to_wait();
    self->doorbells_.push_back(doorbell);
  }
  if (!std::exchange(self->any_, true)) self->lateness_.on_held(nessie::Clock::now());
  if (is_to_be_watched && !pusher.watch(self)) {
    self->may_hold_ = false;
    self->release();
  }
  return true;
}

void HeldRings::release() {
  any_ = false;
  doubts_.on_sent(lateness_.on_sent());
  const std::lock_guard guard(mutex_);
  push();
}

void HeldRings::forget(int doorbell) {
  if (!any_) return;
  const std::lock_guard guard(mutex_);
  if (std::erase(doorbells_, doorbell) > 0) ring(doorbell);
}

void HeldRings::push() {
  for (const int doorbell : doorbells_) ring(doorbell);
  doorbells_.clear();
}

}  // namespace nnti::shm
