// SPDX-License-Identifier: BSD-3-Clause
// The implementation of nnti::Endpoint and its registered buffers, which several files of this folder share.
#pragma once

#include "nnti/endpoint/eager.hpp"
#include "nnti/endpoint/probe.hpp"
#include "nnti/endpoint/waiter.hpp"
#include "nnti/transport/allocation.hpp"
#include "nnti/transport/atomics.hpp"
#include "nnti/transport/transport.hpp"

#include <base/birth.hpp>

#include <array>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nnti {

inline constexpr std::int64_t kDefaultSendQueue = 4096;
inline constexpr std::int64_t kDefaultSpinMicroseconds = 50;
inline constexpr std::uint64_t kDefaultEagerMemory = 16 << 20;

struct RegisteredBuffer::Impl {
  Endpoint::Impl *endpoint = nullptr;  ///< null once the endpoint is gone
  MemoryRegion region;
  bool outlives_endpoint = false;                 ///< peers may use what they mapped of it when the endpoint is gone
  SharedMemory allocated;                         ///< if Endpoint::allocate() made the memory
  std::unique_ptr<std::vector<std::byte>> owned;  ///< memory that the endpoint made as an application does
  /// One for each transport over which the buffer was described.
  std::vector<std::pair<Transport *, std::unique_ptr<TransportMemory>>> registrations;
  std::list<Impl *>::iterator position;

  ~Impl();
  Result<TransportMemory *> registration_with(Transport &transport);
};

struct Endpoint::Impl final : TransportEvents {
  struct Queued {
    MessageKind kind;
    std::vector<std::byte> bytes;
    std::size_t sent = 0;  ///< of a message that goes in fragments
  };
  struct Peer {
    Connection *connection = nullptr;
    std::list<Queued> queue;            ///< waits for credits; takes no memory while it is empty
    std::vector<std::byte> assembling;  ///< fragments that have come
    std::string passed_over;            ///< which of its URLs were not used, and why
  };

  Impl(EndpointOptions options, EventSink &event_sink);
  ~Impl();
  const nessie::Birth birth;
  Status open_transports();
  Status choose_transports();
  Status open_transport(TransportKind kind, bool listen, bool is_named);
  /// Ok: it may be missing. kPeerLost: its network is down at present.
  Status not_opened(const TransportKind &kind, bool listen, const Error &why);
  Result<Transport *> transport_named(std::string_view name);
  std::vector<std::string> preferences() const;
  std::string describe_preferences() const;
  std::string why_not_ours(std::string_view transport) const;
  /// The transport that can reach `url`, opened if need be. kInvalidArgument: a setting has a wrong value. kPeerLost:
  /// its network is down.
  Result<Transport *> transport_reaching(const nessie::Url &url);

  PeerId add_peer(Connection &connection);
  Peer *find(PeerId peer) const;
  /// Forgets the peer; the connection, if it lives, must be closed by the caller.
  Connection *remove(PeerId peer);
  Status send_message(PeerId id, Peer &peer, std::span<const std::byte> message);
  bool send_block(PeerId id, Peer &peer, std::span<const std::byte> message);
  bool transmit(PeerId id, Peer &peer, Queued &queued);
  bool on_block(Connection &connection, std::span<const std::byte> notice);
  bool on_fragment(Connection &connection, MessageKind kind, std::span<const std::byte> fragment);
  Status send(PeerId id, MessageKind kind, std::span<const std::byte> message);
  Status enqueue(PeerId id, Peer &peer, MessageKind kind, std::span<const std::byte> message);
  std::size_t flush_queues();
  bool flush_queue(PeerId id);
  void start_atomic(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, const AtomicOperation &operation,
                    std::uint64_t &previous, Completion &completion);
  bool on_protocol(Connection &connection, MessageKind kind, std::span<const std::byte> message);
  bool on_atomic(Connection &connection, std::span<const std::byte> message);
  bool on_ping(Connection &connection, std::span<const std::byte> message);
  bool on_borrow(Connection &connection, std::span<const std::byte> message);
  Result<RemoteBuffer> lend(Connection &connection, ProbeMemory memory);
  template <class Encode> void ask(PeerId peer, MessageKind kind, Encode encode_request, Completion &completion);
  /// Completes what is asked of `peer`, which is gone, and takes back what it was lent.
  void abandon_operations(PeerId peer, const Error &error);
  std::unique_ptr<RegisteredBuffer::Impl> add_buffer(std::span<std::byte> memory, Rights rights);
  Result<std::unique_ptr<RegisteredBuffer::Impl>> allocate(std::size_t size_bytes, Rights rights);
  Result<std::unique_ptr<RegisteredBuffer::Impl>> allocate_own();
  void reject(Connection &connection);
  std::size_t progress();

  void accepted(Connection &connection) override;
  void message(Connection &connection, MessageKind kind, std::span<const std::byte> message) override;
  void lost(Connection &connection, Loss loss, const Error &error) override;

  EndpointOptions options;
  EventSink &sink;
  std::size_t queue_limit = 0;
  std::string url;
  Poller poller;  ///< outlives the transports
  unsigned turns = 0;
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<TransportKind> unopened;  ///< asked for, but not needed yet
  std::vector<TransportKind> unwanted;  ///< have nothing that is better; opened if a URL names them
  std::map<std::string, std::string, std::less<>> unopenable;  ///< by name: why it cannot be opened here
  std::vector<std::unique_ptr<Peer>> peers;                    ///< by PeerId - 1; null once lost
  std::vector<PeerId> waiting_for_credits;
  PendingAtomics atomics;
  PendingProbes probes;
  EagerBlocks eager_blocks;
  Endpoint *self = nullptr;
  std::list<RegisteredBuffer::Impl *> buffers;
  /// By PeerId and ProbeMemory: what peers try their transfers on.
  std::map<std::uint64_t, std::array<std::unique_ptr<RegisteredBuffer::Impl>, 2>> lent;
  Waiter waiter{poller};
};

}  // namespace nnti
