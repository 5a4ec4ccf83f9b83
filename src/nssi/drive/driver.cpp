// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/drive/driver.hpp>

#include <algorithm>
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
  wake(true);
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
  for (wake(true); urgent_.load() && try_take(); wake(true)) {
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
    left_to_run_.wait_for(lock, std::chrono::milliseconds(100), [&] { return is_free(); });
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
  Waiting self{&done};
  std::unique_lock lock(mutex_);
  waiting_.push_back(&self);
  waiters_.fetch_add(1);
  const auto go_on = [&] { return self.is_called || done.load() || is_free(); };
  if (deadline.is_never())
    self.called.wait(lock, go_on);
  else
    self.called.wait_until(lock, deadline.when(), go_on);
  waiters_.fetch_sub(1);
  std::erase(waiting_, &self);
  if (next_ == &self) next_ = nullptr;
}

/// Those for whom there is something; if the role was left, also one who may take it, unless such a one is on its way
/// already: run() goes first.
void Driver::wake(bool is_left) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiters_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  const auto call = [](Waiting &one) {
    one.is_called = true;
    one.called.notify_one();
  };
  for (auto *each : waiting_)
    if (!each->is_called && each->done->load()) call(*each);
  if (!is_left) return;
  if (wanted()) return left_to_run_.notify_all();
  const auto next = std::ranges::find(waiting_, false, &Waiting::is_called);
  if (next_ != nullptr || next == waiting_.end()) return;
  next_ = *next;
  call(**next);
}

}  // namespace nssi
