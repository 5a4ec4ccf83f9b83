// SPDX-License-Identifier: BSD-3-Clause
// One peer: its segment with a ring in each direction, its table, its doorbell, and the socket whose end is its death.
#pragma once

#include "nnti/bootstrap.hpp"
#include "nnti/transports/shm/bulk.hpp"
#include "nnti/transports/shm/fence.hpp"
#include "nnti/transports/shm/relay.hpp"
#include "nnti/transports/shm/ring.hpp"
#include "nnti/transports/shm/table.hpp"

#include <unordered_set>

namespace nnti::shm {

class ShmTransport;

/// What the bootstrap brought together.
struct PeerParts {
  int side = 0;             ///< 0: we connected
  std::uint64_t slots = 0;  ///< of each mailbox
  bool asymmetric_fence = false;
  Mapping segment, table;
  Fd doorbell;
  pid_t process = 0;
  Status cma;  ///< or why bulk data is relayed
};

class ShmConnection final : public Connection, public Poller::Handler, private Bounces {
 public:
  ShmConnection(ShmTransport &transport, bootstrap::PageSocket socket, PeerParts parts);

  Transport &transport() override;
  std::string explain() const override;
  std::size_t max_message_bytes() const override { return max_in_place_bytes(parts_.slots); }
  bool try_send(MessageKind kind, std::span<const std::byte> message) override;
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override;
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override;
  std::optional<Result<std::uint64_t>> try_atomic(const RemoteBuffer &remote, std::uint64_t offset,
                                                  const AtomicOperation &operation) override;
  bool maps_memory() const override { return true; }
  Result<PeerView> view(const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes) override;
  void close() override;

  /// Delivers messages, moves relayed data, and reports the loss of the peer once all that it sent is delivered.
  std::size_t progress();
  bool ready() const { return is_open() && (in_.ready() || out_.has_new_credit() || end_.has_value()); }
  /// Whether progress() has something to do.
  bool has_work() const { return in_.ready() || relay_.busy() || end_.has_value() || !is_open(); }
  bool fences_asymmetrically() const { return parts_.asymmetric_fence; }
  bool is_open() const { return state_ == State::kOpen; }
  int socket_fd() const { return socket_.fd(); }
  void on_fd_ready() override;
  /// Reads the socket if it was noted as ready. Returns the number of events.
  std::size_t look_at_socket();
  /// What the socket has: memory to map, or the peer's end.
  void on_socket();
  void sweep_mappings() {
    if (!mappings_.empty()) mappings_.sweep(table());
  }

  /// Lets the peer map our buffer. Without success the peer reaches it in another way.
  void announce(const RemoteBuffer &buffer, int memfd);
  void forget(std::uint64_t key) { announced_.erase(key); }
  /// After something was written that the peer, if it falls asleep just now, must see.
  void wake_peer();
  void ring_doorbell();
  /// True while the peer reads or writes our buffer at `slot`.
  bool peer_transfers(std::uint32_t slot) const {
    return inbox().control->transfer.load(std::memory_order_seq_cst) == slot + 1ull;
  }
  bool peer_is_gone() const;

 private:
  /// Names memory that the peer may map; its descriptor goes with it.
  struct Announcement {
    std::uint64_t key = 0;
    std::uint32_t slot = 0, zero = 0;
  };
  enum class State { kOpen, kLost, kClosed };
  Mailbox outbox() const { return mailbox_at(parts_.segment.base(), parts_.side, parts_.slots); }
  Mailbox inbox() const { return mailbox_at(parts_.segment.base(), 1 - parts_.side, parts_.slots); }
  void send_announcement(const Announcement &announcement, int memfd);
  std::byte *mine() override;
  std::byte *theirs() override;
  const EndpointTable &table() const { return *reinterpret_cast<const EndpointTable *>(parts_.table.base()); }
  bool deliver_one();
  void pump_relay();
  void close_socket();
  void lose(Error error);
  void start(const Operation &operation);
  /// Empty: must be relayed.
  std::optional<Status> transfer_now(const Operation &operation);
  std::optional<Status> copy(const Operation &operation, const Registered &registered);
  /// Null: not mapped here. Borrowed until the next call.
  const std::shared_ptr<Mapping> *find_mapping(const RemoteBuffer &remote, const Registered &registered, bool to_write);

  ShmTransport &transport_;
  PeerParts parts_;
  RingWriter out_;
  RingReader in_;
  Relay relay_;
  State state_ = State::kOpen;
  bool socket_ready_ = false;
  std::uint64_t rung_epoch_ = 0;
  std::optional<Error> end_;  ///< the peer is gone; what it sent before is still to be delivered
  bootstrap::PageSocket socket_;
  PeerMappings mappings_;
  std::unordered_set<std::uint64_t> announced_;
  SharedMemory own_bounce_;
  Mapping their_bounce_;
};

}  // namespace nnti::shm
