// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/framed/pusher.hpp"

#include <base/thread.hpp>

#include <sys/resource.h>
#include <time.h>

#include <utility>

namespace nnti {
namespace {

constexpr unsigned kLooksClosely = 16;
constexpr unsigned kIdleLooks = 16;  // after which a place is not watched any more

}  // namespace

// --- of one place -------------------------------------------------------------------------------------------------------

bool Held::begin_to_wait() {
  if (!anything_waits()) seen_ = false;
  return !std::exchange(watched_, true);
}

Held::Look Held::push_if_old() {
  const std::lock_guard guard(mutex_);
  if (anything_waits()) {
    idle_looks_ = 0;
    if (!std::exchange(seen_, true)) return Look::kWaits;
    push();
    return Look::kPushed;
  }
  if (++idle_looks_ < kIdleLooks) return Look::kNothing;
  idle_looks_ = 0;
  watched_ = false;
  rest();
  return Look::kIdle;
}

// --- of all of them -----------------------------------------------------------------------------------------------------

Pusher::~Pusher() {
  if (!thread_.joinable()) return;
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
  return thread_.joinable();
}

void Pusher::run() {
  Pace pace;
  std::vector<std::shared_ptr<Held>> looked_at;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (watched_.empty()) {
      something_.wait(lock);
      continue;
    }
    something_.wait_for(lock, pace.period(), [this] { return stop_; });
    looked_at.swap(watched_);
    lock.unlock();
    bool has_pushed = false;
    std::erase_if(looked_at, [&](const auto &held) {
      const auto look = held->push_if_old();
      has_pushed |= look == Held::Look::kPushed;
      return look == Held::Look::kIdle;
    });
    pace.on_look(has_pushed);
    lock.lock();
    watched_.insert(watched_.end(), looked_at.begin(), looked_at.end());
    looked_at.clear();
  }
}

// --- whether to hold back -----------------------------------------------------------------------------------------------

Lateness::Deeds Lateness::deeds() {
  timespec cpu_time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_time);
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return {std::this_thread::get_id(),
          std::chrono::seconds(cpu_time.tv_sec) + std::chrono::nanoseconds(cpu_time.tv_nsec), usage.ru_nvcsw};
}

void Lateness::on_held(nessie::Clock::time_point now) {
  since_ = now;
  if (looks_closely_ > 0) before_ = deeds();
}

bool Lateness::on_sent() {
  const auto took = nessie::Clock::now() - since_;
  const bool has_looked = looks_closely_ > 0;
  if (took <= kLate) {
    looks_closely_ -= has_looked ? 1 : 0;
    return false;
  }
  looks_closely_ = kLooksClosely;
  if (!has_looked) return false;
  const auto now = deeds();
  if (now.thread != before_.thread) return false;
  return now.sleeps > before_.sleeps || now.cpu_time - before_.cpu_time >= took / 2;
}

}  // namespace nnti
