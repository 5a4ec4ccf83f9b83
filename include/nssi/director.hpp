// SPDX-License-Identifier: BSD-3-Clause
// Who moves data when: handlers ask a director, who lets them through in an order of his choice, within a budget of
// memory and one of bandwidth. That the server chooses is what NSSI's bulk data are for (Nessie paper, section 3).
//
// A transfer's turn comes when it is the first in the order and both budgets have room for it; while it waits for room
// nobody behind it is let past. Whoever has waited for longest_wait goes before all orders, so nobody starves.
#pragma once

#include <nssi/memory.hpp>
#include <nssi/nssi.hpp>

#include <memory>

namespace nssi {

/// Where a transfer's data are to go, or come from, in storage: numbers of the service's choosing.
struct Target {
  std::uint64_t file = 0, offset = 0;
};

/// A transfer that waits for its turn.
struct Ask {
  std::uint64_t size_bytes = 0;
  PeerId caller;
  Target target;
  nessie::Clock::time_point since;
  std::uint64_t number = 0;  ///< rises from one to the next
};

/// The order. Used by one thread at a time, with a lock held: it must not call the director.
class Policy {
 public:
  virtual ~Policy() = default;
  /// Whether `a` goes before `b`: a strict weak order until let_through() is called. Those alike go by age.
  virtual bool before(const Ask &a, const Ask &b) const = 0;
  /// The turn of `ask` has come.
  virtual void let_through(const Ask &ask) { (void)ask; }
};

std::unique_ptr<Policy> oldest_first();
std::unique_ptr<Policy> smallest_first();
std::unique_ptr<Policy> largest_first();
/// By file and offset, upwards from the last one, and from the beginning again: as an elevator goes that never goes
/// down with passengers.
std::unique_ptr<Policy> by_target();
/// Callers share the bandwidth alike, whatever they ask for at once. Start-time fair queueing: Goyal, Vin, Cheng,
/// SIGCOMM 1996.
std::unique_ptr<Policy> callers_in_turn();

struct DirectorOptions {
  /// Of what has been let through and not been released; 0: no limit. What is larger goes alone.
  std::uint64_t memory_bytes = 0;
  /// 0: no limit. What is larger than the burst goes when there is a whole burst, and those after it wait for it.
  std::uint64_t bytes_per_second = 0;
  std::uint64_t burst_bytes = std::uint64_t{1} << 20;
  /// Who waits for longer goes first, the oldest of them before the others.
  std::chrono::milliseconds longest_wait{1000};
  /// Null: oldest_first().
  std::unique_ptr<Policy> policy = nullptr;
};

class DirectorState;

/// Memory of the budget. Moves; it is given back when dropped, by any thread, also after the director is gone.
class Grant {
 public:
  Grant() = default;
  Grant(Grant &&other) noexcept;
  Grant &operator=(Grant &&other) noexcept;
  ~Grant() { release(); }
  std::uint64_t size_bytes() const { return size_bytes_; }
  void release();

 private:
  friend class Director;
  Grant(std::shared_ptr<DirectorState> state, std::uint64_t size_bytes)
      : state_(std::move(state)), size_bytes_(size_bytes) {}
  std::shared_ptr<DirectorState> state_;
  std::uint64_t size_bytes_ = 0;
};

/// Data that were pulled. The memory budget has them until this is dropped.
class Pulled {
 public:
  Pulled(Grant grant, Memory memory) : grant_(std::move(grant)), memory_(std::move(memory)) {}
  std::span<std::byte> bytes() const { return memory_.bytes(); }

 private:
  Grant grant_;  // goes last
  Memory memory_;
};

/// For handlers of one runtime that are fibers, the driver's or a pool's; short handlers cannot wait, and get
/// kInvalidArgument where they would have to. Any thread; it outlives the handlers that use it.
class Director {
 public:
  Director(Runtime &runtime, DirectorOptions options);
  ~Director();
  Director(const Director &) = delete;

  /// Suspends the handler's fiber until its turn has come, and takes `size_bytes` of both budgets. kTimedOut: not
  /// before the deadline, or the request's. kCancelled, kPeerLost: as Request::check(). Nothing is taken then.
  Result<Grant> admit(Request &request, std::uint64_t size_bytes, const Target &target = {},
                      Deadline deadline = Deadline::never());
  /// Pulls data[offset, offset+size_bytes) of the request when its turn has come, into memory that is borrowed then.
  /// Errors as admit(), Memory::borrow() and Request::get_data().
  Result<Pulled> pull(Request &request, std::uint64_t offset, std::size_t size_bytes, const Target &target = {},
                      Deadline deadline = Deadline::never());
  /// Pushes `source` when its turn has come. Errors as admit() and Request::put_data().
  Status push(Request &request, std::span<const std::byte> source, std::uint64_t offset, const Target &target = {},
              Deadline deadline = Deadline::never());

  /// How many wait now.
  std::size_t waiting() const;
  /// Of the memory budget, now.
  std::uint64_t used_bytes() const;

 private:
  Runtime &runtime_;
  std::shared_ptr<DirectorState> state_;
};

}  // namespace nssi
