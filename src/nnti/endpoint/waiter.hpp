// SPDX-License-Identifier: BSD-3-Clause
// How an endpoint waits: spin, then yield, then block.
#pragma once

#include "base/fd.hpp"
#include "nnti/transport/poller.hpp"
#include "nnti/transport/transport.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace nnti {

/// Design notes. A blocked wake-up costs thirty to ninety times a polled one, so a short spin pays whenever the peer
/// runs on another core. On a full node it does harm: the spinning process keeps from its core the very one it waits
/// for; and one that yields gets its turn again only after everybody else's, while one that was blocked is run at once
/// when woken. Nobody tells us how full the node is, but sched_yield() does: where others are runnable it comes back
/// late, and the kernel has counted that we left the core. Then waits block at once, for many times as long as it was
/// late; then one tries again, more and more rarely as it keeps coming back late. A thread that is bound to one core,
/// as launchers bind ranks, yields after two microseconds already, and spins on if nobody else wanted that core.
/// Who blocks there for an answer (Waking::kInTurn) is a batch job to the scheduler while it sleeps, and between two
/// sleeps of which one follows soon upon the other: its service, if they share a core, is not interrupted by each
/// answer that it gives, and gives several meanwhile. Sixteen processes and their service on two cores: two to four
/// times as many answers. A transport without a descriptor is asked now and then while the others block: what comes is
/// noticed late by a sixteenth of the time slept, 20 ms at most, which costs an idle process some thousandths of a
/// core.
class Waiter {
 public:
  /// `poller` is borrowed for the waiter's life.
  explicit Waiter(Poller &poller);
  /// `spin`: how long to spin before yielding; 0: never spin.
  void configure(std::chrono::microseconds spin);
  /// Watches the transport's wait_fd(). It must outlive every wait() that it is part of.
  void add(const Transport &transport);
  void wait(std::span<const std::unique_ptr<Transport>> transports, Deadline deadline, Waking waking);
  /// Any thread; async-signal-safe.
  void wake();
  /// The last waits found others who wanted the cores. Of a thread that may run on several: one that is bound to a core
  /// keeps it only from those who share it, and leaves it to them soon.
  bool is_crowded() const { return crowded_until_ && !is_bound_; }

  /// As Endpoint::wait_fd(), arm() and disarm().
  Result<int> descriptor();
  bool arm(std::span<const std::unique_ptr<Transport>> transports);
  void disarm(std::span<const std::unique_ptr<Transport>> transports);

 private:
  /// A descriptor of which only its readiness is to be known.
  struct Watched final : Poller::Handler {
    void on_fd_ready() override { ready = true; }
    const Transport *transport = nullptr;  ///< null: the waiter's own
    bool ready = false;
  };
  using Transports = std::span<const std::unique_ptr<Transport>>;
  bool something_is_ready(Transports transports);
  bool spin(Transports transports, Deadline deadline);
  bool leave_core(long departures_before);
  bool yield(Transports transports);
  bool poll(Transports transports, Deadline deadline);
  void block(Transports transports, Deadline deadline, Waking waking);
  bool take_ready(const Transport &transport);
  bool arm_all(Transports transports, Deadline &deadline);
  void disarm_all(Transports transports);
  void sleep(Transports armed, Deadline deadline);

  Poller &poller_;
  Watched woken_up_;
  std::vector<std::unique_ptr<Watched>> watched_;
  std::chrono::nanoseconds spin_{0};
  bool is_bound_ = false;   ///< to one core
  bool is_shared_ = false;  ///< others wanted that core when it was last left to them
  int caution_;             ///< how many times as long as the next late return waits shall block at once
  std::optional<nessie::Clock::time_point> crowded_until_;
  nessie::Clock::time_point woken_at_;  ///< when the last sleep that was to end in turn did
  nessie::Fd wake_fd_;
  nessie::Fd timer_fd_;    ///< once somebody asked for descriptor()
  std::size_t armed_ = 0;  ///< how many of the transports
  std::atomic<bool> woken_{false}, blocked_{false};
};

}  // namespace nnti
