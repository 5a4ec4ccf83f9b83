// SPDX-License-Identifier: BSD-3-Clause
// The interface that each transport implements. Each has a folder, transports/<name>/: there `transport` opens, listens
// and makes progress, `connection` is one peer, and `memory`, where it has one of its own, keeps registrations. The
// endpoint chooses among them (endpoint/transport_list.cpp). conformance/ tests each of them against this interface.
//
// Threads: everything here is called by one thread at a time. Callbacks of TransportEvents and Completion may call back
// into any function of the endpoint, progress() and disconnect() included; so a transport never holds an iterator, a
// lock, or a reference to its connection's inside across one unless it is safe against that.
#pragma once

#include "nnti/transport/poller.hpp"

#include <nnti/nnti.hpp>

#include <base/clock.hpp>
#include <base/url.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nnti {

class Transport;

/// What a message is for. The transport carries it beside the bytes (values up to 31) and does not look at it.
enum class MessageKind : std::uint8_t {
  kUser = 0,        ///< the application's
  kAtomic = 1,      ///< asks the owner of a registered buffer for an atomic operation on it
  kAtomicDone = 2,  ///< the answer
  kEager = 3,       ///< names a block of the sender's memory that holds a message (eager.hpp)
  kEagerDone = 4,   ///< the block was fetched
  kFragment = 5,    ///< part of a message; more follow
  kLastFragment = 6,
  kPing = 7,    ///< to be sent back as it is (probe.hpp)
  kPong = 8,    ///< the echo
  kBorrow = 9,  ///< asks for memory to try transfers on
  kLent = 10,   ///< the answer
};
inline constexpr std::uint8_t kMaxMessageKind = 31;

/// Every transport takes messages of so many bytes at least.
inline constexpr std::size_t kMinMessageBytes = 112;

/// What the channel (channel/) puts in front of every message: a transport that is not Reliability::kAlways takes
/// messages that much larger than Endpoint promises.
inline constexpr std::size_t kChannelHeaderBytes = 16;

/// Why a connection ended. kGone: the peer's process ended, or it left, or it broke the protocol: for good. kBroken:
/// the link failed, and the process may well live: connecting again may bring it back.
enum class Loss { kGone, kBroken };

/// What a transport promises of the messages on a connection. kAlways: in order, exactly once, until the peer is gone
/// (Loss::kGone only). kUntilBroken: so until the connection ends, perhaps with Loss::kBroken, when the last ones may
/// have been lost. kLossy: messages may be lost, doubled and overtaken at any time, one-sided operations may fail for
/// a while (kIo).
enum class Reliability { kAlways, kUntilBroken, kLossy };

/// An atomic operation on a 64-bit word of a registered buffer.
struct AtomicOperation {
  enum class Kind : std::uint8_t { kFetchAdd, kCompareSwap };
  Kind kind = Kind::kFetchAdd;
  std::uint64_t operand = 0;  ///< what is added, or what the word becomes
  std::uint64_t compare = 0;  ///< kCompareSwap: what it must be
};

/// Memory to be registered. Borrowed by the registration.
struct MemoryRegion {
  std::span<std::byte> bytes;
  Rights rights = Rights::kNone;
  /// The sealed memfd that holds `bytes` from its offset 0 on, if Endpoint::allocate() made them; -1 otherwise.
  int memfd = -1;
};

/// One peer. Owned by its transport, from the moment that connects it until the transport reaps it, in a progress()
/// that is not nested in another one, after close() or TransportEvents::lost().
class Connection {
 public:
  virtual ~Connection() = default;

  /// Set by the endpoint; the transport passes it back.
  PeerId peer;

  virtual Transport &transport() = 0;
  /// A sentence: why this transport, how bulk data moves and why so.
  virtual std::string explain() const = 0;
  virtual std::size_t max_message_bytes() const = 0;
  /// Copies `message` (at most max_message_bytes, which is kMinMessageBytes or more) on its way. False: no credits now;
  /// the endpoint keeps the message and asks again from progress(). A transport whose sender lacks credits makes
  /// wait_fd() readable when some arrive. On a broken connection it returns true: lost() follows, or has been called.
  virtual bool try_send(MessageKind kind, std::span<const std::byte> message) = 0;
  /// As Endpoint::get and put. Every one completes exactly once, in whatever order. The transport checks key, bounds
  /// and rights against the owner's registration.
  virtual void get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                   Completion &completion) = 0;
  virtual void put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                   Completion &completion) = 0;
  /// Carries `operation` out on the word at `offset`, checked like a put, if this side can by itself; returns the
  /// word's former value. Empty: it cannot; the owner must be asked. What it does is atomic with respect to the owner's
  /// own atomic operations on the word.
  virtual std::optional<Result<std::uint64_t>> try_atomic(const RemoteBuffer &, std::uint64_t /*offset*/,
                                                          const AtomicOperation &) {
    return std::nullopt;
  }
  /// Whether both ends map what the other one allocated.
  virtual bool maps_memory() const { return false; }
  /// As Endpoint::view; a transport that maps no memory of its peers leaves it at this.
  virtual Result<PeerView> view(const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes);
  /// As Endpoint::give_descriptor, take_descriptor, can_give_descriptors and process_of; a transport that crosses nodes
  /// leaves them at this.
  virtual Status give_descriptor(std::uint64_t key, int descriptor);
  virtual Result<int> take_descriptor(std::uint64_t key);
  virtual bool can_give_descriptors() const { return false; }
  virtual Result<pid_t> process() const;
  /// Completes pending operations with kCancelled and closes; what was sent before still reaches the peer, which then
  /// sees kPeerLost. No event of this connection follows. Nothing but the destructor is called afterwards.
  virtual void close() = 0;
  /// As close(), at once: what was sent before may be lost; and when it returns, no transfer of either side that was
  /// begun over this connection touches memory of this process any more, now or later.
  virtual void abort() { close(); }
};

/// One region registered with one transport; unregisters when dropped: afterwards the key is refused, and no transfer
/// touches the memory.
class TransportMemory {
 public:
  virtual ~TransportMemory() = default;
  /// What to tell `peer`, a connection of the same transport.
  virtual Result<RemoteBuffer> describe_for(Connection &peer) = 0;
  /// The endpoint ends, and peers that have mapped the region may go on reading it: dropping this does not end the key.
  /// Only for memory of Endpoint::allocate().
  virtual void keep() {}
  /// What to tell a peer whose connection is broken for the moment. It holds on every connection made later.
  virtual RemoteBuffer describe() const = 0;
};

/// A connection being made. Dropping it gives the attempt up.
class Connecting {
 public:
  virtual ~Connecting() = default;
  /// Goes on as far as that is possible without waiting; empty: not finished. A Connecting makes its transport's
  /// wait_fd() readable when advance() has something to do.
  /// kRefused: the credentials differ. kPeerLost: nobody listens there. kBadMessage. kUnsupported: versions differ.
  virtual std::optional<Result<Connection *>> advance() = 0;
};

/// What a transport tells its endpoint; called only from within Transport::progress() (and, for completions, from
/// within get(), put() and close()).
class TransportEvents {
 public:
  /// A peer connected to us. Sets connection.peer.
  virtual void accepted(Connection &connection) = 0;
  virtual void message(Connection &connection, MessageKind kind, std::span<const std::byte> message) = 0;
  /// The peer died, left or broke the protocol. After all its messages were delivered and its pending operations
  /// completed with kPeerLost. The last call for this connection.
  virtual void lost(Connection &connection, Loss loss, const Error &error) = 0;

 protected:
  ~TransportEvents() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;  ///< closes every connection

  virtual std::string_view name() const = 0;
  virtual Reliability reliability() const { return Reliability::kAlways; }
  /// Where it can be reached; empty if it does not listen.
  virtual std::string url() const = 0;
  /// Ok, or kUnsupported with a sentence that says why `url` (of this transport's name) cannot be reached from here:
  /// another host, another namespace. kInvalidArgument: not an address of this transport.
  virtual Status can_reach(const nessie::Url &url) const = 0;
  virtual Result<std::unique_ptr<Connecting>> connect(const nessie::Url &url, Deadline deadline) = 0;
  virtual Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &region) = 0;
  /// The region registered here that `buffer`, which a peer sent back to us, names by its key; empty: none (any more).
  virtual std::optional<MemoryRegion> find_memory(const RemoteBuffer &buffer) const = 0;

  /// Delivers what has happened; returns the number of events. The hot path: no system calls on most turns (look at
  /// sockets only when told to by disarm(true), and every few hundred turns).
  virtual std::size_t progress() = 0;
  /// True if progress() would find something in memory; no system calls. A waiter spins on this.
  virtual bool ready() = 0;
  /// A descriptor that is readable whenever progress() has something to do and the transport was armed. kInPoller: its
  /// descriptors are in TransportOptions::poller, where nothing needs to be read; -1: it has none, and
  /// ready() is asked now and then while it is armed.
  static constexpr int kInPoller = -2;
  virtual int wait_fd() const = 0;
  /// The caller is about to block on wait_fd(). False if there is something to do already (then nothing is armed).
  virtual bool arm() = 0;
  /// The caller has blocked: `fd_ready` if wait_fd() was readable (never with kInPoller). Ends what arm() began.
  virtual void disarm(bool fd_ready) = 0;
  /// The next moment at which progress() must be called even if nothing happens (a deadline of a handshake).
  virtual Deadline timer() const { return Deadline::never(); }
};

/// What every transport is opened with.
struct TransportOptions {
  const nessie::Credential &credential;  ///< outlives the transport, as do the others
  const nessie::Config &config;
  TransportEvents &events;
  Poller &poller;
  bool listen = true;
  std::string_view name = {};  ///< under which it is opened ("faulty+shm"); borrowed during open() only
  nessie::TimeSource time = {};
  std::span<const TransportKind *const> extra_transports = {};  ///< as EndpointOptions; borrowed during open() only
  bool sealed = false;   ///< what passes is sealed above it (sealing/): its peers' must be, too
  bool is_named = true;  ///< by the application, or a URL; else it is opened only where it has more than TCP
};

/// nnti.listen_at: the place where the transport `name` is to listen, so that an endpoint is found where another one
/// was that has died; empty: any. kInvalidArgument.
Result<std::optional<nessie::Url>> place_to_listen(const nessie::Config &config, std::string_view name);

/// One line of the list of transports.
struct TransportKind {
  std::string_view name;
  TransportInfo (*survey)(const nessie::Config &config);
  /// kNoResult: it could be opened, but is not named, and has nothing but TCP. kPeerLost: its network is down, and may
  /// be up later.
  Result<std::unique_ptr<Transport>> (*open)(const TransportOptions &options);
  /// What every transport of this kind says of itself. The endpoint puts a channel around all that are not kAlways.
  Reliability reliability = Reliability::kAlways;
  bool crosses_hosts = false;  ///< reaches processes of other nodes
  bool at_once = false;  ///< opened with the endpoint, also with one that does not listen: opening it is collective
};

/// Puts into this process's environment what libraries of the transports look for there. The first transport that needs
/// it does that, too; a process that opens endpoints in several threads calls this before it has them.
void prepare_environment();

/// All that were built in, in order of preference: inproc, shm, ofi and ucx (which are opened only where they have more
/// than TCP, or are named), tcp.
std::span<const TransportKind> transport_list();
/// Those, what the application brought along, and what can be loaded (module.hpp): by name only.
std::vector<TransportKind> known_kinds(std::span<const TransportKind *const> extra);
/// The kind of that name: one of `kinds`, or "faulty+" and the name of one, which then suffers faults at will (see
/// transports/faulty). `name` is borrowed by the result.
std::optional<TransportKind> find_transport_kind(std::string_view name, std::span<const TransportKind> kinds);

}  // namespace nnti
