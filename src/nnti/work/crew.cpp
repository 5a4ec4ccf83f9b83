// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/work/crew.hpp"

#include <algorithm>

namespace nnti {

void Crew::set_endpoint(Endpoint *endpoint) {
  endpoint_.store(endpoint);
  while (endpoint == nullptr && interrupting_.load() > 0) std::this_thread::yield();
}

Crew::Guard Crew::lock() {
  Guard guard(mutex_);
  claim(guard);
  return guard;
}

void Crew::claim(Guard &guard) {
  if (!blocked_) return;
  ++claims_;
  endpoint_.load()->wake();
  unblocked_.wait(guard, [this] { return !blocked_; });
  if (--claims_ == 0) claims_done_.notify_all();
}

void Crew::interrupt() {
  interrupting_.fetch_add(1);
  interrupted_.store(true);
  if (auto *endpoint = endpoint_.load()) endpoint->wake();
  interrupting_.fetch_sub(1);
}

void Crew::end_all(Ended how) {
  for (auto *sleeper : waiting_) {
    if (sleeper->ended == Ended::kNot) sleeper->ended = how;
    sleeper->wake.notify_one();
  }
}

void Crew::serve() {
  for (auto *sleeper : waiting_) {
    if (sleeper->ended != Ended::kNot || !sleeper->check.done()) continue;
    sleeper->ended = Ended::kDone;
    sleeper->wake.notify_one();
  }
}

/// Whether `me` has reason to end. An interrupt that came before a wait ends it even if it need not have waited.
bool Crew::decide(Sleeper &me, bool first) {
  if (me.ended != Ended::kNot) return true;
  if (closed_) end_all(Ended::kClosed);
  if (interrupted_.load(std::memory_order_relaxed) && interrupted_.exchange(false)) end_all(Ended::kInterrupted);
  if (me.ended == Ended::kNot && first && me.check.done()) me.ended = Ended::kDone;
  return me.ended != Ended::kNot;
}

Ended Crew::wait(Guard &guard, Deadline deadline, Check &check) {
  Sleeper me{check};
  waiting_.push_back(&me);
  bool first = true;
  while (!decide(me, first)) {
    first = false;
    const bool happened = work_.turn(guard);
    if (me.ended != Ended::kNot) break;
    if (check.done())
      me.ended = Ended::kDone;
    else if (deadline.passed())
      me.ended = Ended::kTimedOut;
    else if (!happened)
      block(guard, me, deadline);
  }
  leave(me);
  return me.ended;
}

void Crew::leave(Sleeper &me) {
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &me));
  if (closed_) left_.notify_all();
  if (driven_) return;
  for (auto *sleeper : waiting_) {
    if (sleeper->ended != Ended::kNot) continue;
    sleeper->wake.notify_one();
    return;
  }
}

void Crew::block(Guard &guard, Sleeper &me, Deadline deadline) {
  if (!driven_) return drive(guard, deadline);
  if (deadline.is_never())
    me.wake.wait(guard);
  else
    me.wake.wait_until(guard, deadline.when());
  if (me.ended == Ended::kNot) claim(guard);
}

void Crew::drive(Guard &guard, Deadline deadline) {
  driven_ = blocked_ = true;
  guard.unlock();
  endpoint_.load()->wait(deadline);
  guard.lock();
  blocked_ = false;
  unblocked_.notify_all();
  claims_done_.wait(guard, [this] { return claims_ == 0; });
  driven_ = false;
}

void Crew::close(Guard &guard) {
  closed_ = true;
  end_all(Ended::kClosed);
  // A callback may close, and its thread is perhaps inside a wait itself, which ends when the callback has returned.
  const auto is_own = [](const Sleeper *sleeper) { return sleeper->thread == std::this_thread::get_id(); };
  left_.wait(guard, [&] { return std::ranges::all_of(waiting_, is_own); });
}

}  // namespace nnti
