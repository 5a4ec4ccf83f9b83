// SPDX-License-Identifier: BSD-3-Clause
// The descriptors that an endpoint sleeps on: one epoll set for all its transports, so that a wake-up takes one system
// call, and tells at once which of them it is about.
#pragma once

#include "base/fd.hpp"

#include <base/clock.hpp>

namespace nnti {

class Poller {
 public:
  /// Told that a descriptor is ready; within dispatch(). Only takes note: it calls no one, and ends no handler.
  class Handler {
   public:
    virtual void on_fd_ready() = 0;

   protected:
    ~Handler() = default;
  };
  /// kLevel: reported again until what made it ready is consumed. kEdge: once for each event; an eventfd then needs no
  /// read.
  enum class Trigger { kLevel, kEdge };

  Poller();
  /// `fd` and `handler` are borrowed until unwatch(). To close the descriptor alone does not end that, if a process
  /// that was forked meanwhile still has it. Replaces an earlier watch.
  void watch(int fd, Handler &handler, Trigger trigger = Trigger::kLevel);
  void unwatch(int fd);
  /// Readable when dispatch() has something to tell; for an event loop that goes on outside.
  int fd() const { return epoll_.get(); }
  /// Waits until descriptors are ready, or the deadline; tells their handlers. Returns how many there were.
  int dispatch(nessie::Deadline deadline);

 private:
  nessie::Fd epoll_;
};

}  // namespace nnti
