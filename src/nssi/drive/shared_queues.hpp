// SPDX-License-Identifier: BSD-3-Clause
// What several callers have waiting for their turns.
#pragma once

#include <nssi/drive/priority_queues.hpp>

#include <list>
#include <map>
#include <optional>
#include <utility>

namespace nssi {

/// By priority; those alike: of each caller one, in turn, and what one has in order of arrival. So who has little waits
/// for one of each other caller's, however many they have.
template <class T> class SharedQueues {
 public:
  void push(T one, Priority priority, PeerId caller) {
    auto &queue = queues_[{priority, caller.value}];
    if (queue.empty()) turns_.push(caller, priority);
    queue.push_back(std::move(one));
    ++size_;
  }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  struct Taken {
    T one;
    Priority priority;
    PeerId caller;
  };
  /// There must be one.
  Taken take() {
    const auto [caller, priority] = turns_.take();
    return {take_of(caller, priority), priority, caller};
  }
  /// That of the first caller, in their turns, who `may` have one taken; nothing: none may.
  template <class May> std::optional<T> take_if(May may) {
    for (auto callers = turns_.size(); callers != 0; --callers) {
      const auto [caller, priority] = turns_.take();
      if (may(caller)) return take_of(caller, priority);
      turns_.push(caller, priority);
    }
    return std::nullopt;
  }

 private:
  T take_of(PeerId caller, Priority priority) {
    const auto place = queues_.find({priority, caller.value});
    auto &queue = place->second;
    T taken = std::move(queue.front());
    queue.pop_front();
    --size_;
    if (queue.empty())
      queues_.erase(place);
    else
      turns_.push(caller, priority);
    return taken;
  }

  std::size_t size_ = 0;
  PriorityQueues<PeerId> turns_;                                       ///< callers who have some of that priority
  std::map<std::pair<Priority, std::uint64_t>, std::list<T>> queues_;  ///< none is empty
};

}  // namespace nssi
