// SPDX-License-Identifier: BSD-3-Clause
// The lock of a context, and the threads that wait in it.
//
// Design notes. One mutex guards everything. A thread that waits with nothing to do blocks inside Endpoint::wait, which
// delivers nothing, so it gives the mutex up meanwhile; whoever wants the mutex then wakes it (lock()). At most one
// thread blocks so (the driver); the others sleep, each on a condition variable of its own. Whoever made something
// happen looks, on behalf of the sleepers, whether it is what they wait for, and wakes only those (serve()): a wake-up
// costs thirty microseconds, a look a few nanoseconds. A driver that leaves wakes one sleeper to drive.
#pragma once

#include <nnti/nnti.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace nnti {

/// How a wait ended.
enum class Ended { kNot, kDone, kTimedOut, kInterrupted, kClosed };

class Crew {
 public:
  using Guard = std::unique_lock<std::mutex>;
  /// What a thread waits for; called with the lock, by whichever thread.
  struct Check {
    virtual bool done() = 0;

   protected:
    ~Check() = default;
  };
  /// What a thread that waits does meanwhile; called with the lock. May give it up and take it again.
  struct Work {
    virtual bool turn(Guard &guard) = 0;  ///< true: something happened

   protected:
    ~Work() = default;
  };

  explicit Crew(Work &work) : work_(work) {}
  /// Null: it is about to be destroyed; returns when nobody uses it any more.
  void set_endpoint(Endpoint *endpoint);

  /// Who holds the guard has the endpoint to himself.
  Guard lock();
  /// Makes a guard that was given up, and taken again, what lock() returns.
  void claim(Guard &guard);
  Ended wait(Guard &guard, Deadline deadline, Check &check);
  /// Wakes those whose check is done.
  void serve();
  void interrupt();
  /// Ends all waits, now and later; returns when no other thread is inside one.
  void close(Guard &guard);
  /// Whether a thread is blocked, or about to block, in the endpoint.
  bool has_driver() const { return driven_; }

 private:
  struct Sleeper {
    Check &check;
    Ended ended = Ended::kNot;
    std::condition_variable wake = {};
    std::thread::id thread = std::this_thread::get_id();
  };
  void end_all(Ended how);
  bool decide(Sleeper &me, bool first);
  void block(Guard &guard, Sleeper &me, Deadline deadline);
  void drive(Guard &guard, Deadline deadline);
  void leave(Sleeper &me);

  Work &work_;
  std::atomic<Endpoint *> endpoint_{nullptr};
  std::mutex mutex_;
  std::condition_variable unblocked_, claims_done_, left_;
  std::vector<Sleeper *> waiting_;  ///< all threads inside wait()
  std::atomic<bool> interrupted_{false};
  std::atomic<int> interrupting_{0};  ///< calls of interrupt() that may be using the endpoint
  bool blocked_ = false, driven_ = false, closed_ = false;
  int claims_ = 0;
};

}  // namespace nnti
