// SPDX-License-Identifier: BSD-3-Clause
// Endpoints that are closed, and that others of this process may still send to.
//
// Design notes. libfabric's shm lets the endpoints of one process write straight into each other's queues, through one
// and the same mapping. Closing an endpoint unmaps it, and a peer in this process that has not noticed yet, and sends
// its farewell, say, would write into nothing. (Between processes each side has a mapping of its own.) So what is
// closed stays open, and unheard, until the last endpoint of this process is closed too.
#pragma once

#include <memory>

namespace nnti::ofi {

/// Held by a fabric whose endpoints reach into each other. Any thread.
class Retirement {
 public:
  Retirement();
  ~Retirement();
  Retirement(const Retirement &) = delete;
  Retirement &operator=(const Retirement &) = delete;
  /// Keeps `objects` until nobody holds a Retirement any more.
  void keep(std::shared_ptr<void> objects);
};

}  // namespace nnti::ofi
