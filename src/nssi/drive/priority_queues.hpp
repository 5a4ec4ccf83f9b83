// SPDX-License-Identifier: BSD-3-Clause
// What waits for its turn, by priority and in order of arrival.
#pragma once

#include <nssi/nssi.hpp>

#include <array>
#include <deque>
#include <utility>

namespace nssi {

/// The more urgent is taken first; but every so many times the least urgent is, so that it is not forgotten.
template <class T> class PriorityQueues {
 public:
  void push(T one, Priority priority) {
    queues_[index_of(priority)].push_back(std::move(one));
    ++size_;
  }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// There must be one.
  std::pair<T, Priority> take() {
    const bool upside_down = ++turn_ % kTurnsOfTheLeastUrgent == 0;
    for (std::size_t i = 0;; ++i) {
      const auto index = upside_down ? i : kPriorities - 1 - i;
      if (queues_[index].empty()) continue;
      std::pair taken{std::move(queues_[index].front()), static_cast<Priority>(index)};
      queues_[index].pop_front();
      --size_;
      return taken;
    }
  }

 private:
  static constexpr std::size_t kPriorities = 3;
  static constexpr unsigned kTurnsOfTheLeastUrgent = 16;
  static std::size_t index_of(Priority priority) { return static_cast<std::size_t>(priority); }

  std::array<std::deque<T>, kPriorities> queues_;
  std::size_t size_ = 0;
  unsigned turn_ = 0;
};

}  // namespace nssi
