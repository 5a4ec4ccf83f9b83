// SPDX-License-Identifier: BSD-3-Clause
// The numbers of an endpoint's connections: each has a line in the endpoint's table, and, if it uses the shared queue,
// marks its entries there.
//
// Design notes. A seat must not be given to another connection as long as the peer that had it may use it: it would
// read the wrong line, or publish an entry that it claimed before. So who gives a connection up only shuts its socket
// down, and keeps it until the peer closes its own end, or ends.
#pragma once

#include "base/fd.hpp"
#include "nnti/transport/transport.hpp"
#include "nnti/transports/shm/layout.hpp"

#include <vector>

namespace nnti::shm {

class ShmConnection;

class Seats {
 public:
  /// kBusy: all are taken.
  Result<std::uint32_t> take();
  void occupy(std::uint32_t seat, ShmConnection &connection) { seats_[seat].connection = &connection; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(seats_.size()); }
  /// Null: none (any more).
  ShmConnection *occupant(std::uint32_t seat) const { return seat < seats_.size() ? seats_[seat].connection : nullptr; }
  /// Whether a peer may have written under this seat.
  bool is_known(std::uint32_t seat) const { return seat < seats_.size() && seats_[seat].state != State::kFree; }
  /// Whether the peer that had it is known to be gone: it writes nothing more.
  bool is_gone(std::uint32_t seat) const { return seat < seats_.size() && seats_[seat].state == State::kGone; }
  /// The connection is given up here; `socket` is shut down, and readable when the peer has gone, too.
  void leave(std::uint32_t seat, nessie::Fd socket);
  /// `socket` is readable. True: the peer has gone.
  bool has_gone(std::uint32_t seat);
  /// The peer is gone; the seat is free when the queue's entries before `drain_to` have been read.
  void empty(std::uint32_t seat, std::uint64_t drain_to);
  /// The queue's entries before `next` have been read.
  void settle(std::uint64_t next);
  /// The queue is another one now.
  void forget_queue();

 private:
  enum class State { kFree, kTaken, kLeaving, kGone };
  struct Seat {
    ShmConnection *connection = nullptr;
    std::uint64_t drain_to = 0;
    nessie::Fd socket;  ///< kLeaving
    State state = State::kFree;
  };

 public:
  static constexpr std::size_t kBytesOfOne = sizeof(Seat);  ///< of the memory of a seat

 private:
  std::vector<Seat> seats_;
  std::vector<std::uint32_t> free_, gone_;
};

}  // namespace nnti::shm
