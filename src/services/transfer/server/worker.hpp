// SPDX-License-Identifier: BSD-3-Clause
// Threads that compute while the progress thread moves data: a handler gives them work, and its fiber waits for it.
#pragma once

#include <nssi/nssi.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace transfer {

/// What has no fault, or the fault that was found. Borrows what it works on until it is over.
using Work = std::function<nessie::Status()>;

class Workers {
 public:
  class Task;

  /// Without threads, work is done where it is started.
  explicit Workers(unsigned threads);
  ~Workers();
  Workers(const Workers &) = delete;

  /// In a fiber of `runtime`.
  Task start(nssi::Runtime &runtime, Work work);

 private:
  struct State;
  void work_off();
  std::shared_ptr<State> next();

  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<std::shared_ptr<State>> waiting_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

/// Work that was started. Moves; ends no earlier than its work, whatever happens to its fiber meanwhile.
class Workers::Task {
 public:
  Task() = default;
  Task(Task &&) = default;
  Task &operator=(Task &&other) noexcept;
  ~Task() { (void)wait(); }
  /// Suspends the fiber until the work is done, and says what came of it: once, ok from then on.
  nessie::Status wait();

 private:
  friend class Workers;
  explicit Task(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace transfer
