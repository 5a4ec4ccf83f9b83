// SPDX-License-Identifier: BSD-3-Clause
// What an Event's waiters share.
#pragma once

#include <nssi/drive/core.hpp>

#include <algorithm>
#include <atomic>
#include <vector>

namespace nssi {

/// Whoever waits is interested in the event only.
struct NoOtherInterest {
  Status check() const { return {}; }
  Deadline next_check() const { return Deadline::never(); }
};

inline Error not_in_a_fiber() {
  return {Code::kInvalidArgument,
          "an event can be waited for only inside a fiber of its runtime, and a handler can "
          "sleep only there"};
}
inline Error being_destroyed() { return {Code::kCancelled, "the runtime is being destroyed"}; }

struct EventState {
  Core &core;
  std::atomic<bool> set{false};
  std::vector<Strand *> waiters;  ///< the driver's

  void wake_all() {
    for (auto *strand : waiters) core.wake(strand);
  }
  /// Until it is set, the deadline, or an error of `interest`.check(): that is asked whenever the calling fiber is
  /// woken, and at next_check().
  template <class Interest> Status wait(Deadline deadline, const Interest &interest) {
    if (!core.in_fiber()) return not_in_a_fiber();
    auto *self = core.current_strand();
    core.run_as_driver([&] { waiters.push_back(self); });
    Status status = interest.check();
    for (; status.ok() && !set.load() && !core.closing() && !deadline.passed(); status = interest.check())
      core.suspend(deadline.earlier(interest.next_check()));
    core.run_as_driver([&] { waiters.erase(std::ranges::find(waiters, self)); });
    if (set.load()) return {};
    if (!status.ok()) return status;
    if (core.closing()) return being_destroyed();
    return Error{Code::kTimedOut, "the event was not set before the deadline"};
  }
};

}  // namespace nssi
