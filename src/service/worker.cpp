// SPDX-License-Identifier: BSD-3-Clause
#include <service/worker.hpp>

#include <base/log.hpp>
#include <base/thread.hpp>

#include <atomic>
#include <span>

namespace nessie::service {

struct Worker::Task::State {
  State(nssi::Runtime &runtime, std::function<void()> what) : work(std::move(what)), told(runtime) {}
  void carry_out() {
    work();
    told.set();
    is_over.store(true);
    is_over.notify_one();
  }
  std::function<void()> work;
  nssi::Event told;
  std::atomic<bool> is_over{false};  ///< nothing of this is used by the worker any more
};

/// The fiber of a runtime that is being destroyed is not suspended any more, and blocks instead.
void Worker::Task::wait() {
  if (!state_) return;
  (void)state_->told.wait();
  state_->is_over.wait(false);
  state_.reset();
}

Worker::Worker(unsigned threads) {
  while (threads_.size() < threads) {
    auto thread = start_thread([this] { run(); });
    if (!thread.joinable()) {
      log::warning("the system gives {} threads of {}", threads_.size(), threads);
      return;
    }
    threads_.push_back(std::move(thread));
  }
}

Worker::~Worker() {
  stop();
  for (auto &thread : threads_) thread.join();
}

void Worker::submit(Lane lane, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    of(lane).push_back(std::move(work));
  }
  filled_.notify_one();
}

void Worker::stop() {
  const std::lock_guard lock(mutex_);
  is_stopping_ = true;
  filled_.notify_all();
}

bool Worker::waits(Lane lane) {
  const std::lock_guard lock(mutex_);
  return !of(lane).empty();
}

void Worker::drop_ahead() {
  std::unique_lock lock(mutex_);
  of(Lane::kAhead).clear();
  ahead_ended_.wait(lock, [&] { return ahead_under_way_ == 0; });
}

void Worker::run() {
  bool was_ahead = false;
  while (auto work = next(was_ahead)) work();
}

/// Null: there is no more.
std::function<void()> Worker::next(bool &was_ahead) {
  std::unique_lock lock(mutex_);
  if (was_ahead && --ahead_under_way_ == 0) ahead_ended_.notify_all();
  Queue *found = nullptr;
  filled_.wait(lock, [&] {
    for (auto &queue : std::span(lanes_).first(is_stopping_ ? 2 : 3))
      if (!queue.empty()) return found = &queue, true;
    return is_stopping_;
  });
  was_ahead = found == &of(Lane::kAhead);
  if (found == nullptr) return nullptr;
  if (was_ahead) ++ahead_under_way_;
  auto work = std::move(found->front());
  found->pop_front();
  return work;
}

Worker::Task Worker::start(nssi::Runtime &runtime, std::function<void()> work) {
  auto state = std::make_shared<Task::State>(runtime, std::move(work));
  submit(Lane::kRequest, [state] { state->carry_out(); });
  return Task(std::move(state));
}

}  // namespace nessie::service
