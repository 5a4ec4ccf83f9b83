// SPDX-License-Identifier: BSD-3-Clause
// The transport, as its connections see it. What they use for each message is here, and nothing of it is virtual.
#pragma once

#include "base/random.hpp"
#include "nnti/transports/shm/held_rings.hpp"
#include "nnti/transports/shm/table.hpp"

#include <vector>

namespace nnti::shm {

class ShmConnection;

/// What the settings ask for.
struct ShmSettings {
  static Result<ShmSettings> of(const nessie::Config &config);
  bool use_cma = true;
  ChannelKind channel = ChannelKind::kMailbox;  ///< of connections that we make
  bool in_advance = false;                      ///< channels are set up with the connection, not at their first use
  std::uint32_t slots = 0;                      ///< of the mailboxes of connections that we make
  std::uint64_t queue_entries = 0;
};

class Host : public Transport {
 public:
  TransportEvents &events() { return events_; }
  const EndpointTable &table() const { return table_.table(); }
  EndpointTable &own_table() { return table_.table(); }
  bool sets_up_in_advance() const { return settings_.in_advance; }
  /// Names us in transfer marks.
  std::uint64_t owner_id() const { return probe_; }

  /// Counts progress().
  unsigned turn() const { return turns_; }
  bool is_delivering() const { return depth_ > 0; }
  /// The ring waits until the next progress(). False: ring at once.
  bool hold_ring(int doorbell) { return HeldRings::hold(held_rings_, pusher_, doorbell); }
  void forget_ring(int doorbell) { held_rings_->forget(doorbell); }
  /// Looks at the connection at each turn, as long as it needs that. `attended`: it is in the list.
  void attend(ShmConnection &connection, bool &attended) {
    if (!std::exchange(attended, true)) attended_.push_back(&connection);
  }

  /// `seat` is the connection's; `to_write`: also when the socket takes more.
  virtual void watch(int fd, std::uint64_t seat, bool to_write) = 0;
  virtual void unwatch(int fd) = 0;
  /// The peer lives, and may not have noticed yet.
  virtual void leave_seat(std::uint32_t seat, nessie::Fd socket) = 0;
  /// The peer is gone.
  virtual void empty_seat(std::uint32_t seat, std::uint64_t drain_to) = 0;

  /// Our queue, once a connection uses it: its memory, how many entries of it have been read, and where those end that
  /// were claimed under a seat.
  struct QueueMemory {
    int fd;
    std::uint64_t entries;
  };
  virtual QueueMemory queue_memory() const = 0;
  virtual std::uint64_t queue_read() const = 0;
  virtual std::uint64_t queue_end_of(std::uint32_t seat) const = 0;

 protected:
  Host(const TransportOptions &options, OwnTable table, const ShmSettings &settings)
      : events_(options.events), table_(std::move(table)), settings_(settings), probe_(nessie::random_u64()) {}

  TransportEvents &events_;
  OwnTable table_;
  const ShmSettings settings_;
  const std::uint64_t probe_;
  Pusher pusher_;
  std::shared_ptr<HeldRings> held_rings_ = std::make_shared<HeldRings>();
  std::vector<ShmConnection *> attended_;
  unsigned turns_ = 0;
  int depth_ = 0;
};

}  // namespace nnti::shm
