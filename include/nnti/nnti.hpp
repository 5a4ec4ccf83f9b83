// SPDX-License-Identifier: BSD-3-Clause
// NNTI, the Network Transport Interface, in C++: peers, registered buffers, messages, one-sided put and get.
// Section 4 of the Nessie paper describes it. The paper's own interface, in C, is nnti/nnti.h; it is made on this one.
//
// Threads: an Endpoint and everything made from it is used by one thread at a time (its callers hold a lock of their
// own); only Endpoint::wake() may be called by any thread at any moment.
// Progress: nothing moves behind the caller's back. Events are delivered, and queued messages sent, from progress()
// (connect() calls it) and, where said, from the call that caused them; wait() delivers nothing.
#pragma once

#include <base/clock.hpp>
#include <base/config.hpp>
#include <base/credential.hpp>
#include <nessie/result.hpp>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace nnti {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;

/// Names a peer of one endpoint. Never reused within the endpoint's life.
struct PeerId {
  std::uint64_t value = 0;
  bool operator==(const PeerId &) const = default;
};

/// What peers may do with a buffer. Bits; or-ed by `|`.
enum class Rights : std::uint32_t { kNone = 0, kRemoteRead = 1, kRemoteWrite = 2, kReadWrite = 3, kRemoteAtomic = 4 };
constexpr Rights operator|(Rights a, Rights b) {
  return static_cast<Rights>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}

/// What a peer needs to reach a registered buffer: plain data, which its owner sends to peers inside messages. Nothing
/// in it is trusted: key, bounds and rights are checked against the owner's registration.
struct RemoteBuffer {
  std::uint64_t key = 0;      ///< unguessable; dies with the registration
  std::uint64_t address = 0;  ///< transport-private
  std::uint64_t size_bytes = 0;
  std::uint64_t location = 0;  ///< transport-private
  std::uint32_t slot = 0;      ///< transport-private
  Rights rights = Rights::kNone;
};

/// Receives an endpoint's events, each from within progress(), connect(), or the call that caused it. Its functions,
/// and completions, may call anything, progress() included; but not destroy the endpoint.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// A message arrived. `message` is borrowed until the function returns. Messages of one peer arrive in the order in
  /// which they were sent, each exactly once.
  virtual void on_message(PeerId from, std::span<const std::byte> message) = 0;
  /// A peer connected to us (not called for peers that we connected to).
  virtual void on_peer_connected(PeerId) {}
  /// The peer died, disconnected, or its connection broke: called exactly once for a peer, after the completions, with
  /// kPeerLost, of all operations pending with it. The id is dead from now on.
  virtual void on_peer_lost(PeerId, const Error &) = 0;
};

/// Memory of a peer that is read in place. It can be read until this is dropped, whatever becomes of the peer and of
/// its registration; what it holds is the peer's to change, and not to be trusted.
class PeerView {
 public:
  PeerView() = default;
  /// `keep` holds the mapping.
  PeerView(std::span<const std::byte> bytes, std::shared_ptr<const void> keep)
      : bytes_(bytes), keep_(std::move(keep)) {}
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Gives back the physical pages by which the bytes count as this process's memory, until they are read again.
  void release_pages() const;

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> keep_;
};

/// Told, exactly once, how a put or get ended. Borrowed by the operation until then.
class Completion {
 public:
  virtual void on_complete(Status status) = 0;

 protected:
  ~Completion() = default;
};

class Endpoint;

/// A range of memory that peers may reach. Moves, does not copy; unregisters when dropped: afterwards its key is
/// refused and no new transfer touches the memory.
class RegisteredBuffer {
 public:
  RegisteredBuffer();
  RegisteredBuffer(RegisteredBuffer &&) noexcept;
  RegisteredBuffer &operator=(RegisteredBuffer &&) noexcept;
  ~RegisteredBuffer();

  /// False: there is none, or it was moved away, or reset.
  bool valid() const { return impl_ != nullptr; }
  /// The memory, and what peers may do with it; empty, kNone: not valid.
  std::span<std::byte> bytes() const;
  Rights rights() const;
  /// The description to send to `peer`, over whose transport the memory is registered now, if it was not yet.
  /// kInvalidArgument: the buffer is not valid. kPeerLost: there is no such peer (any more), or the endpoint is gone.
  /// kNoMemory: the transport, or its network, can register no more. kUnsupported, kIo: it cannot register this memory.
  Result<RemoteBuffer> describe_for(PeerId peer) const;
  /// Unregisters, as dropping it does. Returns when no transfer touches the memory any more, which may take some
  /// seconds if a peer has stopped in the middle of one.
  void reset();

 private:
  friend class Endpoint;
  friend class EagerBlocks;
  /// The key of allocated memory goes on being valid when the endpoint ends, for peers that have it mapped.
  void outlive_endpoint();
  struct Impl;
  explicit RegisteredBuffer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Describes a kind of transport, and how to open one. Needed only for one that this library does not contain, such as
/// nnti::mpi::transport_kind() of <nnti/mpi.hpp>.
struct TransportKind;

struct EndpointOptions {
  /// Names of the transports to open, such as "shm", in order of preference. Empty: all that this machine has, of ofi
  /// and ucx only those that have more than TCP.
  std::vector<std::string> transports;
  /// More transports to choose from; used only if `transports` names them.
  std::vector<const TransportKind *> extra_transports;
  /// Proved to peers, and demanded from them. The empty one: that of nessie::Credential::of(config), by default the
  /// user's own.
  nessie::Credential credential;
  /// Accept connections (servers), or only make them (clients). Who only makes them opens a transport when connect()
  /// first meets a URL that needs it; one whose opening is collective (mpi), with the endpoint.
  bool listen = true;
  /// Settings "nnti.*" (see docs/configuration.md): nnti.spin_us, nnti.shm.cma, nnti.ofi.provider, nnti.ofi.address, …
  nessie::Config config;
};

/// One line of an explanation.
struct Fact {
  std::string name, value;
};

/// How a transport presents itself to `nessie info`.
struct TransportInfo {
  std::string name;
  bool available = false;
  std::string explanation;  ///< why not available; or how it moves bulk data, and why so
  /// What was found and what follows from it, one line each: limits in force, interfaces, what was not chosen and why.
  std::vector<Fact> facts = {};
};

/// What a thread that blocks in Endpoint::wait() does when it is woken on a node with fewer cores than there is to do.
enum class Waking {
  kAtOnce,  ///< it takes the core from who runs there, if the scheduler thinks it just: for those whom others wait for
  kInTurn,  ///< it lets that one finish its time; for those who wait for an answer: often it is the answering service
};

/// Memory that an endpoint lends to peers that measure it: as allocate() makes it, or as an application's own.
enum class ProbeMemory : std::uint32_t { kAllocated, kOwn };
inline constexpr std::size_t kProbeBytes = 1 << 20;

/// A connection that is being made while its owner does other things. Moves; dropping it gives up. Not to outlive its
/// endpoint.
class ConnectAttempt {
 public:
  ConnectAttempt(ConnectAttempt &&) noexcept;
  ConnectAttempt &operator=(ConnectAttempt &&) noexcept;
  ~ConnectAttempt();
  /// Goes on as far as that is possible without waiting. Empty: not finished; call it again after progress(), which
  /// wait() waits for, and when it is due(). Otherwise as Endpoint::connect; not to be called again then.
  std::optional<Result<PeerId>> advance();
  /// When to call advance() at the latest.
  Deadline due() const;

 private:
  friend class Endpoint;
  struct Impl;
  explicit ConnectAttempt(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Endpoint {
 public:
  /// Opens the transports. `sink` is borrowed for the endpoint's life. kUnsupported, with the list of those that exist,
  /// if a transport asked for does not exist here; when none is asked for, what cannot be opened is left out.
  /// kInvalidArgument: a setting has a value that cannot be read. kNoMemory: memory or descriptors are short. Otherwise
  /// as the transports asked for, and nessie::Credential::of(), say.
  static Result<std::unique_ptr<Endpoint>> open(EndpointOptions options, EventSink &sink);
  /// What this machine has, without opening an endpoint.
  static std::vector<TransportInfo> survey(const nessie::Config &config,
                                           std::span<const TransportKind *const> extra_transports = {});
  /// The thresholds in force under `config`, each with the setting that it comes from. kInvalidArgument: one of them
  /// has a value that cannot be read.
  static Result<std::vector<Fact>> thresholds(const nessie::Config &config);

  /// Gives all peers up, as disconnect(); gives what was sent a moment (a second or so) to leave. Registered buffers
  /// that outlive it are not registered any more.
  /// In a child of fork() it leaves everything, which is its parent's, as it is; so do registered buffers.
  ~Endpoint();

  /// The URLs at which this endpoint can be reached, joined by ';'. Empty if it does not listen.
  const std::string &url() const;

  /// Connects to the endpoint at `url` (a list joined by ';') over the first of our transports, in order of preference,
  /// that can reach it, proving the credential both ways. Returns when messages can be sent; drives progress meanwhile.
  /// Where one fails, the next one is tried, and leaves half of the time to the one after it; only a wrong credential
  /// is final. kInvalidArgument: the URL does not parse. kUnsupported: none of its transports can reach it from here
  /// (the message says why for each, and what there is). kRefused: the credentials differ. kTimedOut. kPeerLost:
  /// nobody listens there any more; the network is down. Where several failed: the code of the first. kCancelled:
  /// `stop` was requested, by whatever thread.
  Result<PeerId> connect(std::string_view url, Deadline deadline, const std::stop_token &stop = {});
  /// Begins the same, without waiting. kInvalidArgument: the URL does not parse.
  Result<ConnectAttempt> start_connecting(std::string_view url, Deadline deadline);
  /// Gives the peer up: pending operations complete with kCancelled; the peer sees kPeerLost. No on_peer_lost here.
  void disconnect(PeerId peer);

  /// "shm": the transport that reaches `peer` (empty: there is no such peer), and a sentence why it was chosen; of a
  /// peer that we connected to, also why not over the other URLs of its list.
  std::string_view transport_of(PeerId peer) const;
  std::string explain(PeerId peer) const;
  /// Whether `peer` can map, and so view(), what allocate() makes here.
  bool can_view(PeerId peer) const;
  /// Whether messages for `peer` still wait here for credits.
  bool has_unsent(PeerId peer) const;
  /// The largest message that send() takes for this peer (at least 4096 bytes); 0: there is no such peer.
  std::size_t max_message_bytes(PeerId peer) const;
  /// The largest that goes in place, in a mailbox or frame; larger ones through a block, or in fragments. 0 likewise.
  std::size_t max_in_place_bytes(PeerId peer) const;

  /// Registers memory that the caller owns; it must stay mapped until the buffer is dropped. kInvalidArgument: it would
  /// end behind the last address.
  Result<RegisteredBuffer> register_memory(std::span<std::byte> memory, Rights rights);
  /// Allocates memory that peers on this node can map (zeroed, page-aligned) and registers it; it is freed when the
  /// buffer is dropped. kNoMemory.
  Result<RegisteredBuffer> allocate(std::size_t size_bytes, Rights rights);

  /// Gives `peer` a copy of an open descriptor: take_descriptor(`key`) there finds it, once, from any message on that
  /// is sent afterwards. `descriptor` stays the caller's, and may be closed when this returns. The peer keeps at most
  /// 64 that it has not taken. kUnsupported: the peer is not on this node. kBusy: too much waits to be sent. kPeerLost.
  Status give_descriptor(PeerId peer, std::uint64_t key, int descriptor);
  /// What `peer` gave under `key`, with the access that it was opened with there; the caller closes it. kNotFound:
  /// nothing, or it was taken. kNoMemory: this process had no descriptor left when it came. kPeerLost.
  Result<int> take_descriptor(PeerId peer, std::uint64_t key);
  /// Whether `peer` and this endpoint can give each other descriptors: the kernel of this node connects them. That
  /// stays so while the peer is there, and is so for sealed connections, too (`nnti.encrypt`), over which nobody can
  /// view().
  bool can_give_descriptors(PeerId peer) const;
  /// The process that made the connection to us, or that listened when we made it: the kernel says so (SO_PEERCRED),
  /// not the peer. Its number as this process sees it. A process that has ended may have left its socket to another,
  /// and its number to a third. kUnsupported: the peer is not on this node, or is in a pid name space that cannot be
  /// seen from here. kPeerLost.
  Result<pid_t> process_of(PeerId peer) const;

  /// Sends `message` (copied before the call returns). Locally complete on return; delivered in order, exactly once, as
  /// long as both sides live. Never blocks and never overruns the receiver: without credits the message is queued here
  /// and sent from progress(). kBusy: more than nnti.send_queue messages are queued for this peer. kInvalidArgument:
  /// larger than max_message_bytes. kPeerLost.
  Status send(PeerId peer, std::span<const std::byte> message);

  /// Copies remote[offset, offset+local.size()) into `local`. `local` and `completion` are borrowed until on_complete,
  /// which may run before get() returns. ok: the bytes can be read here. kOutOfRange / kRefused: outside the registered
  /// buffer, or a dead or forged key, or a right that is missing; nothing was moved. kPeerLost: `local` holds no usable
  /// data. kCancelled: disconnected. kIo, kNoMemory, kBusy, kUnsupported: the transport, or its peer, could not move
  /// the data (the peer unmapped what it had registered; the network can register no more memory); `local` likewise.
  void get(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
           Completion &completion);
  /// remote[offset, offset+size_bytes), to be read where it lies. kUnsupported: it cannot be (the peer is on another
  /// node, or the memory is its application's own); get() it then. Otherwise errors as get(). Never waits.
  Result<PeerView> view(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes);
  /// Copies `local` into remote[offset, …). ok: the bytes can be read by the peer, remotely visible before any message
  /// that is sent to it afterwards. Otherwise as get().
  void put(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
           Completion &completion);

  /// Adds `operand` to the 64-bit word at `offset` of the peer's buffer (registered with kRemoteAtomic), atomically,
  /// and exactly once. ok: `previous` has the word's former value; `previous` and `completion` are borrowed until
  /// on_complete. kOutOfRange, kRefused as for put(); kInvalidArgument: the word is not aligned to 8 bytes; kBusy: more
  /// than nnti.send_queue operations are pending. kPeerLost, kCancelled: it was executed at most once, or not at all.
  /// The buffer's owner reads and changes such words with std::atomic_ref.
  void fetch_add(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::uint64_t operand,
                 std::uint64_t &previous, Completion &completion);
  /// Sets the word to `desired` if it is `expected`: it was, if `previous` says so. Otherwise as fetch_add().
  void compare_swap(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset, std::uint64_t expected,
                    std::uint64_t desired, std::uint64_t &previous, Completion &completion);

  /// Has the peer's endpoint send `size_bytes` (at most max_in_place_bytes) back; its application does not notice. ok:
  /// they are back. kBusy: more than nnti.send_queue such requests are pending. kInvalidArgument, kPeerLost,
  /// kCancelled.
  void ping(PeerId peer, std::size_t size_bytes, Completion &completion);
  /// Asks the peer's endpoint for kProbeBytes that this side may get() and put() as it likes, until it disconnects. ok:
  /// `buffer` describes them; it and `completion` are borrowed until on_complete. kBusy: too many others do the same.
  /// kNoMemory, kUnsupported: it has none of that kind. kPeerLost, kCancelled.
  void borrow_memory(PeerId peer, ProbeMemory memory, RemoteBuffer &buffer, Completion &completion);

  /// Delivers what has happened, without waiting. Returns the number of events handled (0: nothing to do).
  std::size_t progress();
  /// Waits until progress() may have something to do, wake() was called, or the deadline passes; spins, then yields,
  /// then blocks. May return early; delivers nothing itself.
  void wait(Deadline deadline, Waking waking = Waking::kAtOnce);
  /// The last waits found that others want the cores: whoever polls on, keeps from its core perhaps the very one that
  /// it waits for, and better waits at once. From the thread that waits.
  bool is_crowded() const;
  /// Makes the current or the next wait() return at once. Any thread; async-signal-safe.
  void wake();

  /// For a caller with an event loop of its own, instead of wait(): a descriptor that is readable, while armed, when
  /// progress() has something to do or wake() was called. kIo: the system has no descriptors left.
  Result<int> wait_fd();
  /// Before the caller sleeps on wait_fd(). False: there is something to do now, and nothing is armed.
  bool arm();
  /// Ends what arm() began, before anything else is called here.
  void disarm();

  struct Impl;  ///< private to the implementation

 private:
  explicit Endpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nnti
