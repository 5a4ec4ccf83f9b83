// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/io_queue.hpp>

namespace staging {

void IoQueue::submit(Lane lane, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  (lane == Lane::kRequest ? requests_ : drains_).push_back(std::move(task));
  filled_.notify_one();
}

void IoQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  filled_.notify_all();
}

void IoQueue::run() {
  while (auto task = next()) task();
}

std::function<void()> IoQueue::next() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [&] { return stopping_ || !requests_.empty() || !drains_.empty(); });
  auto &lane = requests_.empty() ? drains_ : requests_;
  if (lane.empty()) return nullptr;
  auto task = std::move(lane.front());
  lane.pop_front();
  return task;
}

}  // namespace staging
