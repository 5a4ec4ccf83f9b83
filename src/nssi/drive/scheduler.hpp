// SPDX-License-Identifier: BSD-3-Clause
// Runs fibers, by priority and in order of arrival, on one thread at a time: the one that drives progress, or a pool's
// (pool.hpp). Where they compute for so long that others wait, of each caller one has its turn. Used by that thread
// only.
#pragma once

#include <base/clock.hpp>
#include <nssi/drive/fiber.hpp>
#include <nssi/drive/shared_queues.hpp>
#include <nssi/nssi.hpp>
#include <nssi/observe/tracer.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace nssi {

using nessie::Clock;

class Worker;

/// A fiber with its place in the scheduler.
struct Strand {
  explicit Strand(std::size_t stack_bytes) : fiber(stack_bytes) {}
  Fiber fiber;
  Worker *home = nullptr;  ///< null: the driver's
  Priority priority = Priority::kNormal;
  PeerId caller;       ///< whose request it carries out; value 0: nobody's
  TraceContext trace;  ///< what the work belongs to
  bool queued = false;
  bool timed = false;
  std::multimap<Clock::time_point, Strand *>::iterator timer;
};

class Scheduler {
 public:
  /// `quiet` and `longest_hold` say when what was spawned last begins; see RuntimeOptions. `home`: whose it is.
  Scheduler(std::size_t stack_bytes, std::size_t max_fibers, Clock::duration quiet, Clock::duration longest_hold,
            Worker *home = nullptr)
      : stack_bytes_(stack_bytes), max_fibers_(max_fibers), home_(home), quiet_(quiet), longest_hold_(longest_hold) {}

  /// Queues `work`; it starts when one of the max_fibers fibers is free, by priority and in its caller's turn. If it
  /// `may_exceed`, it starts in any case.
  void spawn(std::function<void()> &&work, Priority priority = Priority::kNormal, PeerId caller = {},
             bool may_exceed = false);
  /// Queues `work` that starts, in order of arrival, one at each run_ready(), when it has been quiet.
  void spawn_last(std::function<void()> work, PeerId caller);
  /// It is not quiet.
  void disturb() { disturbed_ = true; }
  /// What was spawned last begins without waiting for quiet.
  void hasten_last() { begin_last_at_ = {}; }
  /// Runs what is ready now, each until it suspends or ends; not what becomes ready meanwhile, nor all of it if that
  /// takes long. True if anything ran.
  bool run_ready() { return (has_ready() || !last_.empty()) && run_some(); }
  bool has_ready() const { return !ready_.empty() || !crowd_.empty(); }
  /// Whether what is spawned now would begin at once.
  bool can_start() const { return waiting_.empty() && has_room(); }
  /// Of max_fibers: who wants no more may exceed them, so that others cannot take all.
  std::size_t own_fibers() const { return max_fibers_ / 128; }
  /// The fiber that is running, or nullptr.
  Strand *current() const { return current_; }
  /// From inside a fiber: until wake(), or the deadline. Callers loop: being woken is no promise.
  void suspend(Deadline deadline);
  void wake(Strand *strand);
  void wake_all();
  /// Wakes the fibers whose deadline has passed.
  void expire();
  Deadline next_expiry() const;
  /// Works that have started and not ended, and those that have not started.
  std::size_t unfinished() const { return strands_.size() - idle_.size() + waiting_.size() + last_.size(); }

 private:
  bool run_some();
  Strand *begin(std::function<void()> &&work, Priority priority, PeerId caller);
  Strand *next_ready() { return crowd_.empty() ? ready_.take().first : crowd_.take().one; }
  void share_turns();
  void start_waiting();
  bool may_begin_last();
  bool start_one_of_last();
  bool has_room() const { return strands_.size() - idle_.size() < max_fibers_; }
  bool has_idle() { return !idle_.empty() || add_strand(); }
  bool add_strand();
  void run(Strand *strand);
  void drop_timer(Strand *strand);

  std::size_t stack_bytes_, max_fibers_;
  Worker *home_;
  std::vector<std::unique_ptr<Strand>> strands_;
  std::vector<Strand *> idle_;
  PriorityQueues<Strand *> ready_;
  SharedQueues<Strand *> crowd_;  ///< instead of ready_, from a turn that took too long until it is empty
  SharedQueues<std::function<void()>> waiting_;  ///< for a fiber
  std::deque<std::pair<std::function<void()>, PeerId>> last_;
  const Clock::duration quiet_, longest_hold_;
  bool disturbed_ = false;
  Clock::time_point begin_last_at_, held_since_;  ///< while last_ is not empty
  std::multimap<Clock::time_point, Strand *> timers_;
  Strand *current_ = nullptr;
};

}  // namespace nssi
