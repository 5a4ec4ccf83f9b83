// SPDX-License-Identifier: BSD-3-Clause
// Threads that run handlers beside the one that drives. Each has a scheduler of its own: a fiber stays in the thread in
// which it began. What has not begun waits for whichever thread is free, by priority and for its caller's turn.
#pragma once

#include <nssi/drive/scheduler.hpp>
#include <nssi/drive/shared_queues.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace nssi {

class Pool;

/// One of its threads.
class Worker {
 public:
  Worker(Pool &pool, std::size_t stack_bytes, std::size_t max_fibers);
  /// The one that the calling fiber runs in; null: it is no pool's.
  static Worker *current();
  /// The calling fiber of a pool, or null.
  static Strand *current_strand();
  /// Suspends the calling fiber, one of this worker's, until it is woken, or the deadline. Callers loop.
  void suspend(Deadline deadline) { scheduler_.suspend(deadline); }
  /// Any thread.
  void wake(Strand *strand);

 private:
  friend class Pool;
  void run();
  bool collect();
  bool wait();

  Pool &pool_;
  Scheduler scheduler_;
  std::condition_variable called_;
  std::vector<Strand *> woken_;  ///< the pool's mutex guards it
  std::atomic<bool> has_news_{false};
  bool sleeps_ = false;      ///< the same
  bool takes_work_ = false;  ///< the same: it sleeps, and has a fiber for new work
  bool wake_all_ = false;
  std::thread thread_;
};

class Pool {
 public:
  /// kInvalidArgument: the cores are no list of cores that this process may use. kNoMemory: no thread could be made.
  static Result<std::unique_ptr<Pool>> start(const PoolOptions &options, std::size_t stack_bytes,
                                             std::size_t max_fibers);
  /// All work must have ended.
  ~Pool();
  const std::string &name() const { return name_; }

  // --- any thread ---------------------------------------------------------------------------------------------------
  void submit(std::function<void()> work, Priority priority, PeerId caller);
  /// Wakes all fibers, which then see that the runtime is being destroyed.
  void wake_all();
  /// Works that have not ended.
  std::size_t unfinished() const { return unfinished_.load(); }

 private:
  friend class Worker;
  explicit Pool(const PoolOptions &options) : name_(options.name), in_order_(options.in_order) {}

  const std::string name_;
  const bool in_order_;
  std::mutex mutex_;
  SharedQueues<std::function<void()>> queue_;
  std::atomic<std::size_t> queued_{0}, unfinished_{0};
  bool stop_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// kInvalidArgument: it asks for a number of threads, or for cores, that no pool of this process can have.
Status check(const PoolOptions &options);

/// "0-3,8": the numbers of cores, in order. kInvalidArgument.
Result<std::vector<int>> parse_cores(std::string_view text);

}  // namespace nssi
