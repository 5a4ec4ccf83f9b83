// SPDX-License-Identifier: BSD-3-Clause
// What fibers of the thread that drives wait with until some state has changed.
#pragma once

#include <nssi/nssi.hpp>

#include <utility>
#include <vector>

namespace nessie::service {

/// Fibers that wait until somebody says that the state they look at has changed. On the thread that drives.
class WaitQueue {
 public:
  explicit WaitQueue(nssi::Runtime &runtime) : runtime_(runtime) {}
  /// Suspends the fiber until notify_all(). It looks at the state again itself. kTimedOut; kCancelled: the runtime is
  /// being destroyed.
  Status wait(Deadline deadline = Deadline::never()) {
    nssi::Event changed(runtime_);
    waiting_.push_back(&changed);
    auto status = changed.wait(deadline);
    if (!status.ok()) std::erase(waiting_, &changed);
    return status;
  }
  void notify_all() {
    for (auto *changed : std::exchange(waiting_, {})) changed->set();
  }

 private:
  nssi::Runtime &runtime_;
  std::vector<nssi::Event *> waiting_;
};

}  // namespace nessie::service
