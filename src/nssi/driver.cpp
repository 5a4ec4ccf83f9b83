// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/driver.hpp>

#include <utility>

namespace nssi {

/// Not inlined: a fiber may go on in another thread, where a remembered address would be the wrong thread's.
__attribute__((noinline)) std::uintptr_t Driver::self() {
  static thread_local char tag;
  auto *address = &tag;
  __asm__ volatile("" : "+r"(address));
  return reinterpret_cast<std::uintptr_t>(address);
}

bool Driver::try_take() {
  const auto me = self();
  std::uintptr_t nobody = 0;
  if (!contested_.load(std::memory_order_relaxed)) {
    const bool favoured =
        favoured_.load(std::memory_order_relaxed) == me || favoured_.compare_exchange_strong(nobody, me);
    if (favoured && enter_favoured()) return true;
  }
  contest();
  nobody = 0;
  if (!owner_.compare_exchange_strong(nobody, me)) return false;
  if (!favoured_inside_.load()) return true;
  owner_.store(0);
  notify();
  return false;
}

/// Only the favoured thread's. False: somebody else wants the role, too.
bool Driver::enter_favoured() {
  favoured_inside_.store(true, std::memory_order_relaxed);
  nessie::light_fence(true);
  if (!contested_.load(std::memory_order_acquire)) return true;
  favoured_inside_.store(false);
  return false;
}

/// Afterwards the favoured thread sees that it is favoured no more, or we see it inside.
void Driver::contest() {
  if (everybody_knows_.load(std::memory_order_acquire)) return;
  contested_.store(true);
  nessie::heavy_fence();
  everybody_knows_.store(true, std::memory_order_release);
}

void Driver::leave() {
  if (owner_.load(std::memory_order_relaxed) == self()) return owner_.store(0);
  favoured_inside_.store(false, std::memory_order_release);
  nessie::light_fence(true);
}

void Driver::give_up() {
  if (pending_.load(std::memory_order_relaxed)) do_urgent();
  leave();
  if (!contested_.load(std::memory_order_acquire)) return;
  for (notify(); urgent_.load() && try_take(); notify()) {
    do_urgent();
    leave();
  }
}

void Driver::take_for_run(const std::function<void()> &wake) {
  wanted_.store(true);
  waiters_.fetch_add(1);
  while (!try_take()) {
    wake();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return is_free(); });
  }
  waiters_.fetch_sub(1);
  wanted_.store(false);
}

void Driver::hand_over(Work work) {
  std::lock_guard lock(mutex_);
  handed_over_.push_back(std::move(work));
  pending_.store(true);
  urgent_.store(true);
}

void Driver::post(Work work) {
  std::lock_guard lock(mutex_);
  posted_.push_back(std::move(work));
  pending_.store(true);
}

bool Driver::do_pending() {
  std::vector<Work> handed_over, posted;
  {
    std::lock_guard lock(mutex_);
    handed_over.swap(handed_over_);
    posted.swap(posted_);
    pending_.store(false);
    urgent_.store(false);
  }
  for (auto &work : handed_over) work();
  for (auto &work : posted) work();
  return !handed_over.empty() || !posted.empty();
}

void Driver::do_urgent() {
  if (!urgent_.load()) return;
  std::vector<Work> handed_over;
  {
    std::lock_guard lock(mutex_);
    handed_over.swap(handed_over_);
    urgent_.store(false);
  }
  for (auto &work : handed_over) work();
}

void Driver::wait_for_turn(const std::atomic<bool> &done, nessie::Deadline deadline) {
  if (deadline.passed()) return;
  std::unique_lock lock(mutex_);
  waiters_.fetch_add(1);
  auto go_on = [&] { return done.load() || is_free(); };
  if (deadline.is_never())
    changed_.wait(lock, go_on);
  else
    changed_.wait_until(lock, deadline.when(), go_on);
  waiters_.fetch_sub(1);
}

void Driver::notify() {
  if (waiters_.load() == 0) return;
  { std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

}  // namespace nssi
