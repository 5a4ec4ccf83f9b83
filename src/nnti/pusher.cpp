// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/pusher.hpp"

#include <base/thread.hpp>

#include <unistd.h>

#include <chrono>
#include <utility>

namespace nnti {
namespace {

constexpr std::chrono::milliseconds kLook{1};
constexpr unsigned kIdleLooks = 16;  // after which a place is not watched any more

}  // namespace

// --- of one place -------------------------------------------------------------------------------------------------------

bool Held::begin_to_wait() {
  if (!anything_waits()) seen_ = false;
  return !std::exchange(watched_, true);
}

bool Held::push_if_old() {
  const std::lock_guard guard(mutex_);
  if (anything_waits()) {
    idle_looks_ = 0;
    if (std::exchange(seen_, true)) push();
    return true;
  }
  if (++idle_looks_ < kIdleLooks) return true;
  idle_looks_ = 0;
  watched_ = false;
  rest();
  return false;
}

// --- of all of them -----------------------------------------------------------------------------------------------------

Pusher::~Pusher() {
  if (!thread_.joinable()) return;
  if (process_ != ::getpid()) {
    thread_.detach();
    return;
  }
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  something_.notify_one();
  thread_.join();
}

bool Pusher::watch(std::shared_ptr<Held> held) {
  const std::lock_guard guard(mutex_);
  if (!thread_.joinable() && !start()) return false;
  watched_.push_back(std::move(held));
  something_.notify_one();
  return true;
}

bool Pusher::start() {
  thread_ = nessie::start_thread([this] { run(); });
  process_ = ::getpid();
  return thread_.joinable();
}

void Pusher::run() {
  std::vector<std::shared_ptr<Held>> looked_at;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (watched_.empty()) {
      something_.wait(lock);
      continue;
    }
    something_.wait_for(lock, kLook, [this] { return stop_; });
    looked_at.swap(watched_);
    lock.unlock();
    std::erase_if(looked_at, [](const auto &held) { return !held->push_if_old(); });
    lock.lock();
    watched_.insert(watched_.end(), looked_at.begin(), looked_at.end());
    looked_at.clear();
  }
}

// --- whether to hold back -----------------------------------------------------------------------------------------------

bool Preemption::happened_since(nessie::Clock::time_point begin) {
  const long before = std::exchange(departures_, nessie::departures());
  if (departures_ > before) found_at_ = nessie::Clock::now();
  return found_at_ >= begin;
}

}  // namespace nnti
