// SPDX-License-Identifier: BSD-3-Clause
// Work beside the thread that drives: handlers give it away, and their fibers wait for it while others go on.
#pragma once

#include <nssi/nssi.hpp>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace nessie::service {

/// By threads of its own, or by the one that calls run(), as for libraries that insist on the thread of main().
class Worker {
 public:
  /// Which goes first. kAhead: what may be needed later, and is dropped if the end comes before.
  enum class Lane { kRequest, kDrain, kAhead };
  class Task;

  /// 0: whoever calls run(). Its own threads get no signals; there are fewer where the system has no more.
  explicit Worker(unsigned threads = 0);
  /// Its own threads do first what is left of kRequest and kDrain.
  ~Worker();
  Worker(const Worker &) = delete;

  /// Its own that there are.
  std::size_t threads() const { return threads_.size(); }

  /// Any thread. In each lane, work begins in the order of submission.
  void submit(Lane lane, std::function<void()> work);
  /// Works until stop() was called and nothing is left but what is ahead.
  void run();
  void stop();
  /// Any thread. Whether work waits for its turn.
  bool waits(Lane lane);
  /// Forgets the work of kAhead; none is under way any more on return. Not inside of work.
  void drop_ahead();

  /// Begins, as kRequest, what a fiber of `runtime` then waits for. What `work` borrows must live as long as the task.
  Task start(nssi::Runtime &runtime, std::function<void()> work);
  /// Suspends the fiber until `work()` is done, and returns what it returns.
  template <class Work> auto carry_out(nssi::Runtime &runtime, Work work);

 private:
  using Queue = std::deque<std::function<void()>>;
  std::function<void()> next(bool &was_ahead);
  Queue &of(Lane lane) { return lanes_[static_cast<std::size_t>(lane)]; }

  std::mutex mutex_;
  std::condition_variable filled_, ahead_ended_;
  std::array<Queue, 3> lanes_;  ///< by Lane
  bool is_stopping_ = false;
  int ahead_under_way_ = 0;
  std::vector<std::thread> threads_;
};

/// Work that was begun. Moves; ends no earlier than its work, whatever happens to its fiber meanwhile.
class Worker::Task {
 public:
  Task() = default;
  Task(Task &&) = default;
  Task &operator=(Task &&other) noexcept {
    wait();
    state_ = std::move(other.state_);
    return *this;
  }
  ~Task() { wait(); }
  /// Suspends the fiber until the work is done. Returns at once if there is none.
  void wait();

 private:
  friend class Worker;
  struct State;
  explicit Task(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

template <class Work> auto Worker::carry_out(nssi::Runtime &runtime, Work work) {
  decltype(work()) result{};
  start(runtime, [&] { result = work(); }).wait();
  return result;
}

}  // namespace nessie::service
