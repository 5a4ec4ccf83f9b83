// SPDX-License-Identifier: BSD-3-Clause
// How an endpoint waits: spin, then yield, then block.
#pragma once

#include "nnti/fd.hpp"
#include "nnti/transport.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <span>

namespace nnti {

/// Design notes. A blocked wake-up costs thirty to ninety times a polled one, so a short spin pays whenever the peer
/// runs on another core. On a full node it does harm: the spinning process keeps from its core the very one it waits
/// for. Nobody tells us how full the node is, but sched_yield() does: where others are runnable it comes back late. A
/// late return switches spinning off for the next waits; then one wait tries again.
class Waiter {
 public:
  Waiter();
  /// `spin`: how long to spin before yielding; 0: never spin.
  void configure(std::chrono::microseconds spin);
  void wait(std::span<const std::unique_ptr<Transport>> transports, Deadline deadline);
  /// Any thread; async-signal-safe.
  void wake();

 private:
  using Transports = std::span<const std::unique_ptr<Transport>>;
  bool something_is_ready(Transports transports);
  bool spin(Transports transports, Deadline deadline);
  bool yield(Transports transports);
  void block(Transports transports, Deadline deadline);

  std::chrono::nanoseconds spin_{0};
  int waits_without_spin_ = 0;
  Fd wake_fd_;
  std::atomic<bool> woken_{false}, blocked_{false};
};

}  // namespace nnti
