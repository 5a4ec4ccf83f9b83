// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/io_queue.hpp>

#include <span>
#include <utility>

namespace staging {

namespace {

constexpr std::size_t kLanesToEmpty = 2;  // before the end

}  // namespace

void IoQueue::submit(Lane lane, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  of(lane).push_back(std::move(task));
  filled_.notify_one();
}

void IoQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  filled_.notify_all();
}

bool IoQueue::waits(Lane lane) {
  const std::lock_guard lock(mutex_);
  return !of(lane).empty();
}

void IoQueue::drop_ahead() {
  std::unique_lock lock(mutex_);
  of(Lane::kAhead).clear();
  ahead_ended_.wait(lock, [&] { return !ahead_runs_; });
}

void IoQueue::run() {
  while (auto task = next()) task();
}

std::function<void()> IoQueue::next() {
  std::unique_lock lock(mutex_);
  if (std::exchange(ahead_runs_, false)) ahead_ended_.notify_all();
  Tasks *lane = nullptr;
  const auto find = [&] {
    for (auto &tasks : std::span(lanes_).first(stopping_ ? kLanesToEmpty : std::size(lanes_)))
      if (!tasks.empty()) return lane = &tasks, true;
    return false;
  };
  filled_.wait(lock, [&] { return find() || stopping_; });
  if (lane == nullptr) return nullptr;
  ahead_runs_ = lane == &of(Lane::kAhead);
  auto task = std::move(lane->front());
  lane->pop_front();
  return task;
}

}  // namespace staging
