// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/driver.hpp>

#include <utility>

namespace nssi {

/// Not inlined: a remembered address would be another thread's.
__attribute__((noinline)) std::uintptr_t Driver::address_in_this_thread() {
  static thread_local char tag;
  auto *address = &tag;
  __asm__ volatile("" : "+r"(address));
  return reinterpret_cast<std::uintptr_t>(address);
}

bool Driver::try_to_take_from_all() {
  const auto me = this_thread();
  std::uintptr_t nobody = 0;
  if (!contested_.load(std::memory_order_relaxed) && favoured_.compare_exchange_strong(nobody, me) && enter_favoured())
    return true;
  contest();
  nobody = 0;
  if (!owner_.compare_exchange_strong(nobody, me)) return false;
  if (!favoured_inside_.load()) return true;
  owner_.store(0);
  notify();
  return false;
}

/// Afterwards the favoured thread sees that it is favoured no more, or we see it inside.
void Driver::contest() {
  if (everybody_knows_.load(std::memory_order_acquire)) return;
  contested_.store(true);
  nessie::heavy_fence();
  everybody_knows_.store(true, std::memory_order_release);
}

/// What was handed over as the role was given up.
void Driver::do_what_comes_late() {
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

void Driver::notify_all() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiters_.load() == 0) return;
  { std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

}  // namespace nssi
