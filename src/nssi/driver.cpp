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
  std::uintptr_t nobody = 0;
  return owner_.compare_exchange_strong(nobody, self());
}

void Driver::give_up() {
  do {
    do_urgent();
    owner_.store(0);
    notify();
  } while (urgent_.load() && try_take());
}

void Driver::take_for_run(const std::function<void()> &wake) {
  std::unique_lock lock(mutex_);
  wanted_.store(true);
  waiters_.fetch_add(1);
  while (!try_take()) {
    wake();
    changed_.wait_for(lock, std::chrono::milliseconds(100));
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
  auto go_on = [&] { return done.load() || owner_.load() == 0; };
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
