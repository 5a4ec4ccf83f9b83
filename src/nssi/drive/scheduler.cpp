// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/drive/scheduler.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace nssi {

namespace {

constexpr std::size_t kFibersBetweenClocks = 4;
/// What was answered meanwhile may wait for a look at the network, to be sent together; half a millisecond is too long.
constexpr std::chrono::microseconds kLongTurn{200};

}  // namespace

void Scheduler::spawn(std::function<void()> &&work, Priority priority, PeerId caller, bool may_exceed) {
  if (may_exceed || can_start())
    if (has_idle()) return wake(begin(std::move(work), priority, caller));
  waiting_.push(std::move(work), priority, caller);
  start_waiting();
}

/// There must be an idle strand.
Strand *Scheduler::begin(std::function<void()> &&work, Priority priority, PeerId caller) {
  auto *strand = idle_.back();
  idle_.pop_back();
  strand->priority = priority;
  strand->caller = caller;
  strand->fiber.start(std::move(work));
  return strand;
}

void Scheduler::start_waiting() {
  while (!waiting_.empty() && has_room() && has_idle()) {
    auto next = waiting_.take();
    wake(begin(std::move(next.one), next.priority, next.caller));
  }
}

/// False if there is no memory for another stack: the work then waits for one of the fibers that exist.
bool Scheduler::add_strand() {
  try {
    strands_.push_back(std::make_unique<Strand>(stack_bytes_));
  } catch (const std::bad_alloc &) {
    if (strands_.empty()) throw;
    return false;
  }
  strands_.back()->home = home_;
  idle_.push_back(strands_.back().get());
  return true;
}

/// Not all of them, if they compute for long: what has come meanwhile, and who has gone, is to be heard of.
bool Scheduler::run_some() {
  const auto count = ready_.size() + crowd_.size();
  Clock::time_point long_at;
  for (std::size_t i = 0; i < count && has_ready(); ++i) {
    run(next_ready());
    if ((i + 1) % kFibersBetweenClocks != 0) continue;
    const auto now = Clock::now();
    if (long_at == Clock::time_point()) long_at = now + kLongTurn;
    if (now < long_at) continue;
    share_turns();
    break;
  }
  return start_one_of_last() || count != 0;
}

/// Whoever has many that compute for long waits behind those who have few.
void Scheduler::share_turns() {
  while (!ready_.empty()) {
    const auto [strand, priority] = ready_.take();
    crowd_.push(strand, priority, strand->caller);
  }
}

void Scheduler::spawn_last(std::function<void()> work, PeerId caller) {
  if (last_.empty()) {
    held_since_ = Clock::now();
    begin_last_at_ = held_since_ + quiet_;
  }
  last_.emplace_back(std::move(work), caller);
}

bool Scheduler::may_begin_last() {
  if (begin_last_at_ == Clock::time_point{}) return true;
  const auto now = Clock::now();
  if (std::exchange(disturbed_, false)) begin_last_at_ = std::min(now + quiet_, held_since_ + longest_hold_);
  if (now < begin_last_at_) return false;
  hasten_last();  // all of them
  return true;
}

/// Work for which there is no fiber stays where it is: handed to one later, it could be overtaken.
bool Scheduler::start_one_of_last() {
  if (last_.empty() || !waiting_.empty() || !may_begin_last()) return false;
  if (!has_room() || !has_idle()) return false;
  auto *strand = begin(std::move(last_.front().first), Priority::kNormal, last_.front().second);
  last_.pop_front();
  run(strand);
  return true;
}

void Scheduler::run(Strand *strand) {
  strand->queued = false;
  auto *outer = std::exchange(current_, strand);
  strand->fiber.resume();
  current_ = outer;
  if (strand->fiber.has_work()) return;
  idle_.push_back(strand);
  start_waiting();
}

void Scheduler::suspend(Deadline deadline) {
  auto *strand = current_;
  if (!deadline.is_never()) {
    strand->timer = timers_.emplace(deadline.when(), strand);
    strand->timed = true;
  }
  strand->fiber.yield();
  drop_timer(strand);
}

/// One that has ended may still be woken from another thread, which cannot know.
void Scheduler::wake(Strand *strand) {
  if (!strand->fiber.has_work() || std::exchange(strand->queued, true)) return;
  if (crowd_.empty()) [[likely]]
    ready_.push(strand, strand->priority);
  else
    crowd_.push(strand, strand->priority, strand->caller);
}

void Scheduler::wake_all() {
  for (auto &strand : strands_)
    if (strand->fiber.has_work() && strand.get() != current_) wake(strand.get());
}

void Scheduler::drop_timer(Strand *strand) {
  if (std::exchange(strand->timed, false)) timers_.erase(strand->timer);
}

void Scheduler::expire() {
  if (timers_.empty()) return;
  const auto now = Clock::now();
  for (auto it = timers_.begin(); it != timers_.end() && it->first <= now; ++it) wake(it->second);
}

Deadline Scheduler::next_expiry() const {
  if (has_ready()) return Deadline::now();
  const auto last = last_.empty() || !can_start() ? Deadline::never() : Deadline::at(begin_last_at_);
  return timers_.empty() ? last : Deadline::at(timers_.begin()->first).earlier(last);
}

}  // namespace nssi
