// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/server/worker.hpp>

#include <atomic>

namespace transfer {

using nessie::Status;

struct Workers::State {
  State(nssi::Runtime &runtime, Work what) : work(std::move(what)), told(runtime) {}
  void carry_out() {
    outcome = work();
    told.set();
    over.store(true);
    over.notify_one();
  }
  Work work;
  Status outcome;
  nssi::Event told;
  std::atomic<bool> over{false};  ///< nothing of this is used by the thread any more
};

Workers::Workers(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work_off(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  come_.notify_all();
  for (auto &thread : threads_) thread.join();
}

Workers::Task Workers::start(nssi::Runtime &runtime, Work work) {
  auto state = std::make_shared<State>(runtime, std::move(work));
  if (threads_.empty()) {
    state->carry_out();
    return Task(std::move(state));
  }
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(state);
  }
  come_.notify_one();
  return Task(std::move(state));
}

std::shared_ptr<Workers::State> Workers::next() {
  std::unique_lock lock(mutex_);
  come_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
  if (waiting_.empty()) return nullptr;
  auto state = std::move(waiting_.front());
  waiting_.pop_front();
  return state;
}

void Workers::work_off() {
  while (auto state = next()) state->carry_out();
}

Workers::Task &Workers::Task::operator=(Task &&other) noexcept {
  (void)wait();
  state_ = std::move(other.state_);
  return *this;
}

/// The fiber of a runtime that is being destroyed is not suspended any more, and blocks instead: the thread may still
/// be at its work, which is short.
Status Workers::Task::wait() {
  if (!state_) return {};
  (void)state_->told.wait();
  state_->over.wait(false);
  return std::exchange(state_, nullptr)->outcome;
}

}  // namespace transfer
