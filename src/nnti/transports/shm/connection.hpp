// SPDX-License-Identifier: BSD-3-Clause
// One peer: the channels to and from it, its table, its doorbell, and the socket whose end is its death.
#pragma once

#include "base/fence.hpp"
#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/transport/given_descriptors.hpp"
#include "nnti/transports/shm/bulk.hpp"
#include "nnti/transports/shm/host.hpp"
#include "nnti/transports/shm/relay.hpp"
#include "nnti/transports/shm/ring.hpp"
#include "nnti/transports/shm/shared_queue.hpp"

#include <memory>
#include <unordered_set>
#include <variant>

namespace nnti::shm {

/// Before others have their turn.
inline constexpr std::size_t kMessagesPerTurn = 64;

/// What the bootstrap brought together.
struct PeerParts {
  bool accepted = false;  ///< the peer connected to us
  bool asymmetric_fence = false;
  ChannelKind channel = ChannelKind::kMailbox;
  std::uint32_t slots = 0;            ///< of each mailbox
  std::uint32_t own_seat = 0;         ///< in our table
  std::uint32_t their_seat = kSeats;  ///< in theirs; kSeats: not told yet
  std::uint64_t owner = 0;            ///< names the peer in transfer marks
  std::uint64_t queue_entries = 0;
  Mapping table, queue;
  nessie::Fd doorbell;
  pid_t process = 0;  ///< 0: in a pid name space that we do not see
  Status cma;         ///< or why bulk data is relayed
};

class ShmConnection final : public Connection, private RelayLink {
 public:
  ShmConnection(Host &transport, bootstrap::PageSocket socket, PeerParts parts);
  ~ShmConnection() override;

  Transport &transport() override { return transport_; }
  std::string explain() const override;
  std::size_t max_message_bytes() const override {
    return uses_queue() ? kQueuePayload : max_in_place_bytes(parts_.slots);
  }
  bool try_send(MessageKind kind, std::span<const std::byte> message) override;
  void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion) override;
  void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion) override;
  std::optional<Result<std::uint64_t>> try_atomic(const RemoteBuffer &remote, std::uint64_t offset,
                                                  const AtomicOperation &operation) override;
  bool maps_memory() const override { return true; }
  Result<PeerView> view(const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes) override;
  Status give_descriptor(std::uint64_t key, int descriptor) override;
  Result<int> take_descriptor(std::uint64_t key) override;
  bool can_give_descriptors() const override { return true; }
  Result<pid_t> process() const override;
  void close() override;

  /// After construction: tells the peer what it needs, and sets the channel up if that shall not wait.
  void begin();
  /// Delivers messages from the mailbox, moves relayed data, and reports the loss of the peer once all that it sent is
  /// delivered.
  std::size_t progress();
  /// A message from the queue, or what is none.
  void deliver(const Message &message, std::span<const std::byte> bytes);
  void reject();
  /// Whether something has come, or something that waits can go on.
  bool ready() const { return is_open() && ((in_ && in_->ready()) || has_new_credit() || (end_ && is_drained())); }
  /// Whether progress() has something to do.
  bool has_work() const { return (in_ && in_->ready()) || relay_.busy() || end_ || !is_open(); }
  /// Whether the transport must look at it at each turn.
  bool needs_attention() const { return is_open() && (in_.has_value() || relay_.busy() || end_ || writer_starves()); }
  bool uses_queue() const { return parts_.channel == ChannelKind::kSharedQueue; }
  bool is_open() const { return state_ == State::kOpen; }
  /// Its process has ended, or it has closed: it writes nothing more.
  bool peer_has_ended() const { return peer_ended_; }
  int socket_fd() const { return socket_.fd(); }
  std::uint32_t seat() const { return parts_.own_seat; }
  /// The queue that we share with others is broken.
  void give_up(Error error);
  /// The socket is readable, or takes more: memory to map, or the peer's end.
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
  bool peer_transfers(std::uint32_t slot) const;
  /// True while the peer waits for room in our queue.
  bool peer_starves();
  bool peer_is_gone() const;

  std::uint64_t last_spell = 0;  ///< OwnQueue's, to count senders
  bool attended = false;         ///< the transport's: it is in its list

 private:
  enum class State { kOpen, kLost, kClosed };
  void ask_attention() { transport_.attend(*this, attended); }
  bool knows_seat() const { return parts_.their_seat < kSeats; }
  bool writer_starves() const;
  bool has_new_credit() const;
  bool is_drained() const;
  Outcome write(Kind kind, std::span<const std::byte> message) override {
    return write(kind, message, MessageKind::kUser);
  }
  Outcome write(Kind kind, std::span<const std::byte> message, MessageKind message_kind);
  /// Sets the channel to the peer up. False: that must wait, or failed, and end_ says why.
  bool open_channel();
  bool open_mailbox();
  void open_queue();
  void end(Error error);
  void on_page(bootstrap::Page &page);
  bool take_memory(const Announcement &announcement, std::vector<nessie::Fd> &descriptors);
  bool take_seat(const Announcement &announcement, const std::vector<nessie::Fd> &descriptors);
  void send_announcement(const Announcement &announcement, int memfd = -1);
  std::byte *mine() override;
  std::byte *theirs() override;
  /// The peer's; not to be written.
  EndpointTable &table() const { return *reinterpret_cast<EndpointTable *>(parts_.table.base()); }
  ConnectionLine &their_line() const { return table().lines[parts_.their_seat]; }
  ConnectionLine &own_line() const;
  bool deliver_one();
  void pump_relay();
  void lose(Error error);
  void leave();
  void start(const Operation &operation);
  /// Empty: must be relayed.
  std::optional<Status> transfer_now(const Operation &operation);
  std::optional<Status> copy(const Operation &operation, const Registered &registered);
  /// Null: not mapped here. Borrowed until the next call.
  const std::shared_ptr<Mapping> *find_mapping(const RemoteBuffer &remote, const Registered &registered, bool to_write);

  Host &transport_;
  PeerParts parts_;
  std::variant<std::monostate, RingWriter, QueueWriter> out_;  ///< set up at the first use
  std::optional<RingReader> in_;                               ///< once the peer has set its mailbox up
  Mapping out_ring_, in_ring_;
  Relay relay_;
  State state_ = State::kOpen;
  bool peer_ended_ = false;
  std::uint64_t rung_epoch_ = 0;
  unsigned came_at_ = 0;        ///< the transport's turn in which messages came last
  unsigned unanswered_ = 0;     ///< messages that came then, less those that were sent since
  std::uint64_t drain_to_ = 0;  ///< with end_: the queue's entries before this number may be the peer's
  std::unique_ptr<Error> end_;  ///< the peer is gone; what it sent before is still to be delivered
  bootstrap::PageSocket socket_;
  PeerMappings mappings_;
  GivenDescriptors given_;
  std::unordered_set<std::uint64_t> announced_;
  SharedMemory own_bounce_;
  Mapping their_bounce_;
};

}  // namespace nnti::shm
