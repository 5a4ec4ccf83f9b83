// SPDX-License-Identifier: BSD-3-Clause
// What several callers have waiting for their turns.
#pragma once

#include <nssi/priority_queues.hpp>

#include <list>
#include <map>
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
  }
  bool empty() const { return turns_.empty(); }
  /// There must be one.
  std::pair<T, Priority> take() {
    const auto [caller, priority] = turns_.take();
    const auto place = queues_.find({priority, caller.value});
    auto &queue = place->second;
    std::pair taken{std::move(queue.front()), priority};
    queue.pop_front();
    if (queue.empty())
      queues_.erase(place);
    else
      turns_.push(caller, priority);
    return taken;
  }

 private:
  PriorityQueues<PeerId> turns_;                                       ///< callers who have some of that priority
  std::map<std::pair<Priority, std::uint64_t>, std::list<T>> queues_;  ///< none is empty
};

}  // namespace nssi
