// SPDX-License-Identifier: BSD-3-Clause
// The NNTI engine: buffers with purposes, work requests, completion queues, any number of waiting threads. Nessie
// paper, section 4; Trios 12. The C interfaces nnti/nnti.h (the paper's) and Trios_nnti.h (with work requests)
// are thin faces of this one. nnti/nnti.hpp is the floor below: one thread, callbacks, no queues.
//
// Threads: every function may be called by any thread at any moment; any number of threads may wait at once.
// Progress: a process takes part in what its peers do while one of its threads is inside a call that waits, polls a
// CompletionQueue, or connects. Whichever thread that is, it serves all others.
// Errors: a call that returns an error has changed nothing. The codes, besides those said at a function:
//   kInvalidArgument  a null, an empty list, a size of 0, a purpose that contradicts itself
//   kOutOfRange       offset and length lie outside a buffer
//   kRefused          a buffer is not registered for this purpose, or is a peer's
//   kNotFound         the buffer or request does not exist (any more)
//   kPeerLost         the peer is not connected (any more)
//   kTooLarge         the message is larger than its destination
//   kBusy             too much is queued for the peer, or operations are in progress on the buffer
//   kCancelled        what was waited for was withdrawn meanwhile, or the context closed
#pragma once

#include <nnti/nnti.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nnti {

/// What a buffer is for. Bits; a buffer with several purposes is fine. The numbers are those of both C interfaces.
enum class Purpose : std::uint32_t {
  kNone = 0,
  kLocalRead = 1,      ///< a source of our sends and puts
  kRemoteRead = 2,     ///< a source of peers' gets
  kLocalWrite = 4,     ///< a destination of our gets and the results of our atomic operations
  kRemoteWrite = 8,    ///< a destination of peers' puts
  kWithEvents = 16,    ///< what peers do to it makes events here; with kRemoteWrite, it receives messages
  kQueuing = 32,       ///< accepted, without effect: every buffer's events queue
  kReceiveQueue = 64,  ///< each message goes into the next free one of its elements
  kAtomics = 128,      ///< its 64-bit words are targets of peers' atomic operations
  kSendSource = kLocalRead | kWithEvents,
  kReceiveDestination = kRemoteWrite | kWithEvents,
};
constexpr Purpose operator|(Purpose a, Purpose b) {
  return static_cast<Purpose>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr Purpose operator&(Purpose a, Purpose b) {
  return static_cast<Purpose>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr bool any(Purpose purposes) { return purposes != Purpose::kNone; }
constexpr bool has(Purpose purposes, Purpose all) { return (purposes & all) == all; }

/// Names a context in every process. Random; 0 names none.
struct ProcessId {
  std::uint64_t value = 0;
  bool operator==(const ProcessId &) const = default;
};

/// A registered buffer of this context; never reused.
struct BufferId {
  std::uint64_t value = 0;
  bool operator==(const BufferId &) const = default;
};

/// A work request of this context; never reused.
struct RequestId {
  std::uint64_t value = 0;
  bool operator==(const RequestId &) const = default;
};

/// A connected peer, or one that was.
struct PeerInfo {
  ProcessId process;
  std::string url;  ///< empty if it does not listen
};

/// A buffer as everybody may name it: plain data, which travels inside messages. Nothing in it is trusted. Where its
/// segments lie is asked of the owner at the first access, unless the handle was made for this process.
struct BufferHandle {
  ProcessId owner;
  std::uint64_t id = 0;  ///< unguessable; dies with the registration
  Purpose purposes = Purpose::kNone;
  std::uint64_t element_size = 0;
  std::uint64_t elements = 0;
  ProcessId described_for;  ///< for which `description` holds; none: it does not
  RemoteBuffer description;

  BufferId local() const { return {id}; }
  /// All elements; 0 if they are more than an address space.
  std::uint64_t size_bytes() const;
  /// Whether NNTI sends may go here, and how much one of them may carry.
  bool receives_messages() const;
  std::uint64_t largest_message() const;
};

/// A completion.
struct Event {
  static constexpr std::uint32_t kNoElement = UINT32_MAX;

  Purpose purpose = Purpose::kNone;  ///< in which the buffer took part
  Code code = Code::kOk;
  BufferId buffer;
  RequestId request;  ///< none: of the buffer
  std::uint64_t offset = 0, length = 0;
  std::shared_ptr<const PeerInfo> peer;  ///< the other side; null where there is none
  bool outward = false;                  ///< the data went from here to the peer
  std::uint32_t element = kNoElement;    ///< of a message that arrived; the reader's until release()
};

/// How messages that are too large to be pushed go to the peers of one transport.
struct Rendezvous {
  static constexpr std::uint64_t kNever = UINT64_MAX;
  enum class Origin { kDefault, kConfigured, kMeasured };

  std::uint64_t write_from = kNever;  ///< bytes: from here on the sender writes a part; smaller ones are only read
  unsigned read_percent = 50;         ///< of those: how much the receiver reads meanwhile, from the front
  Origin origin = Origin::kDefault;   ///< of write_from
};

struct ContextOptions : EndpointOptions {
  /// 64-bit variables that peers may change by atomic operations (see Context::variables_of).
  std::size_t atomic_variables = 512;
};

class CompletionQueue;

class Context {
 public:
  /// kUnsupported, with the list of those that exist: a transport that was asked for does not exist here. Otherwise as
  /// Endpoint::open().
  static Result<std::shared_ptr<Context>> open(ContextOptions options);
  /// Ends all waits with kCancelled, gives up all peers. Afterwards no peer reaches this process's memory. Also from
  /// within a callback, whose thread's own wait ends when that has returned. In a child of fork() it does nothing: all
  /// that is its parent's.
  void close();
  /// Closes.
  ~Context();

  /// Names this context in handles.
  ProcessId id() const;
  /// Where it can be reached: as Endpoint::url().
  const std::string &url() const;

  // --- peers ---

  /// Connects to the context at `url`, or finds it connected. It may be this one, except over ofi or ucx.
  /// kInvalidArgument: the URL does not parse. kUnsupported: no transport of ours reaches it; the message lists those
  /// that exist. kRefused: the credentials differ. kTimedOut (Deadline::now(): it is not connected yet). Other calls
  /// wait meanwhile.
  Result<std::shared_ptr<const PeerInfo>> connect(std::string_view url, Deadline deadline);
  /// Operations in progress with the peer complete with kCancelled; at the peer, with kPeerLost. kNotFound.
  Status disconnect(ProcessId peer);
  /// Null: not connected.
  std::shared_ptr<const PeerInfo> find_peer(ProcessId peer) const;
  /// How large messages to the peer go. Unless nnti.rendezvous.write_from says it, that is measured once for each
  /// transport of a process, after its first large message, or here: takes milliseconds, and needs the peer inside a
  /// call that waits. The default holds until then, and if nothing can be found out in time. kPeerLost. kTimedOut: the
  /// peer does not answer; the measurement goes on.
  Result<Rendezvous> rendezvous_with(ProcessId peer, Deadline deadline);

  // --- buffers ---

  /// Registers memory that the caller owns, which must stay mapped until it is unregistered. `only_for`: the one peer
  /// that may use it; it must be connected (kNotFound), and the handle carries all it needs. The first receive queue
  /// is where messages without a destination go. kReceiveQueue excludes other purposes.
  Result<BufferHandle> register_memory(void *memory, std::uint64_t element_size, std::uint64_t elements,
                                       Purpose purposes, ProcessId only_for = {});
  /// One buffer that is made of several pieces of memory, in this order. One element.
  Result<BufferHandle> register_segments(std::span<const std::span<std::byte>> segments, Purpose purposes,
                                         ProcessId only_for = {});
  /// Memory of the context's own (zeroed; peers on this node can map it), until it is unregistered.
  Result<BufferHandle> allocate(std::uint64_t element_size, std::uint64_t elements, Purpose purposes,
                                ProcessId only_for = {});
  /// The handle is dead afterwards, here and at peers; completions not yet taken are dropped. kBusy: an operation on it
  /// is in progress.
  Status unregister(BufferId buffer);
  /// The pieces of memory of our buffer. kNotFound. kNoMemory: atomic variables that there are not.
  Result<std::vector<std::span<std::byte>>> memory_of(BufferId buffer) const;

  // --- operations ---
  // Each starts an operation and returns. With `request`, its completion is taken by waiting for the request, which
  // ends with it; without, by waiting for the local buffer, or from the queue that the buffer is bound to. The local
  // memory is lent until then. Errors that only the peer can know are the completion's code: kNotFound (its buffer is
  // gone), kRefused, kTooLarge, kPeerLost, kCancelled.

  /// Sends the whole buffer `message` to `destination`, or, if null, to the peer's receive queue. Complete: it is in
  /// its destination. While that is full it stays pending here and none is lost. Messages of one sender to one
  /// destination arrive in order.
  Status send(ProcessId to, BufferId message, const BufferHandle *destination, RequestId *request = nullptr);
  /// Complete: the peer can read the bytes; they are visible to it before any message that we send afterwards.
  Status put(BufferId source, std::uint64_t source_offset, std::uint64_t length, const BufferHandle &destination,
             std::uint64_t destination_offset, RequestId *request = nullptr);
  /// Complete: the bytes can be read here.
  Status get(const BufferHandle &source, std::uint64_t source_offset, std::uint64_t length, BufferId destination,
             std::uint64_t destination_offset, RequestId *request = nullptr);
  /// Asks the owner of a peer's buffer where it lies, which the first put or get does otherwise: over transports that
  /// reach memory by themselves (shm) that one then need not wait until the owner is in a call. Returns at once.
  void look_up(const BufferHandle &remote);
  /// Puts `length` bytes of `source` from i * length on to the start of destinations[i], for each i. One completion,
  /// when all are complete; its code is the first that is not ok.
  Status scatter(BufferId source, std::uint64_t length, std::span<const BufferHandle> destinations,
                 RequestId *request = nullptr);
  /// Gets `length` bytes from the start of sources[i] to i * length of `destination`.
  Status gather(std::span<const BufferHandle> sources, std::uint64_t length, BufferId destination,
                RequestId *request = nullptr);
  /// Adds `operand` to the word at `offset` of a buffer with kAtomics, exactly once. Complete: its former value is in
  /// the word at `result_offset` of `result` (kLocalWrite), both aligned to 8 bytes (kInvalidArgument).
  Status fetch_add(const BufferHandle &target, std::uint64_t offset, std::uint64_t operand, BufferId result,
                   std::uint64_t result_offset, RequestId *request = nullptr);
  /// Sets the word to `desired` if it is `expected`. Otherwise as fetch_add().
  Status compare_swap(const BufferHandle &target, std::uint64_t offset, std::uint64_t expected, std::uint64_t desired,
                      BufferId result, std::uint64_t result_offset, RequestId *request = nullptr);

  /// Each context has atomic variables, which its peers reach without being told a handle: variable i lies at 8 * i.
  BufferHandle variables_of(ProcessId process) const;
  /// kOutOfRange: there are not so many.
  Result<std::int64_t> read_variable(std::uint64_t index) const;
  /// `changed` runs after each atomic operation of a peer on our variable `index`, in a thread that makes progress,
  /// with no lock held; empty: none runs any more when this returns. Operations that started before a peer learned of
  /// it may go unreported.
  Status on_variable_changed(std::uint64_t index, std::function<void()> changed);

  // --- work requests ---

  /// A request for what peers do to our buffer: each wait takes the oldest event (a message, or a put, get or atomic
  /// operation if the buffer has kWithEvents), and holds its element until the request is cleared or destroyed.
  Result<RequestId> create_request(BufferId buffer);
  /// Gives the element back; the request of a buffer can be waited for again. A request of an operation ends with its
  /// completion, so there is nothing to clear. kBusy: the operation is still in progress.
  Status clear(RequestId request);
  /// Gives the element back and forgets the request. An operation in progress is cancelled, and its completion dropped.
  Status destroy(RequestId request);
  /// The next wait completes with kCancelled if the request waits for a peer's action, or if its operation did not take
  /// effect before it could be stopped; otherwise as if nothing had happened.
  Status cancel(RequestId request);
  /// Cancels all operations from this buffer that have no request.
  Status cancel(BufferId buffer);

  // --- completions ---
  // A wait that takes nothing returns kTimedOut (what is waited for goes on and can be waited for again), kInterrupted,
  // kCancelled, or an error of the call; otherwise the event, whose code tells how the operation ended.

  /// The oldest completion of the buffer whose purpose is in `purposes` (kNone: any).
  Result<Event> wait(BufferId buffer, Purpose purposes, Deadline deadline);
  Result<Event> wait(RequestId request, Deadline deadline);
  /// Whichever is first; its index. The list must not name one twice.
  Result<std::size_t> wait_any(std::span<const BufferId> buffers, Purpose purposes, Deadline deadline, Event &event);
  Result<std::size_t> wait_any(std::span<const RequestId> requests, Deadline deadline, Event &event);
  /// One completion of each. On an error none was taken.
  Status wait_all(std::span<const BufferId> buffers, Purpose purposes, Deadline deadline, std::span<Event> events);
  Status wait_all(std::span<const RequestId> requests, Deadline deadline, std::span<Event> events);
  /// The message of `event` was read; another one may take its place. kNotFound: its buffer is gone, or that of the
  /// process that was forked.
  Status release(BufferId buffer, std::uint32_t element);
  /// All threads that wait return kInterrupted; if there is none, the next that would wait. Async-signal-safe.
  void interrupt();

  /// A queue for completions of several buffers and requests. With `on_event`, each event is handed to it instead,
  /// exactly once, in order, by a thread that makes progress, with no lock held; it may call anything.
  Result<std::unique_ptr<CompletionQueue>> create_queue(std::function<void(const Event &)> on_event = {});

  struct Impl;  ///< private to the implementation

 private:
  friend class CompletionQueue;
  explicit Context(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

/// Completions in the order in which they happened. Dropping it gives its buffers their own events back; when it is
/// gone, its callback does not run any more (it may be dropped within it). In a child of fork() that changes nothing:
/// all is its parent's.
class CompletionQueue {
 public:
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue &) = delete;
  CompletionQueue &operator=(const CompletionQueue &) = delete;

  /// All further events of the buffer that have no request come here, those not yet taken first.
  Status bind(BufferId buffer);
  /// The request's completion comes here.
  Status bind(RequestId request);

  /// Makes progress, then takes what is there: how many of `events` were filled.
  std::size_t poll(std::span<Event> events);
  /// kTimedOut, kInterrupted, kCancelled; kInvalidArgument: the queue has a callback.
  Result<Event> wait(Deadline deadline);
  /// A descriptor for the application's own poll(2) or epoll. Readable when there is an event, or when progress is
  /// needed: poll() until it returns fewer events than it could. kIo: the system has no descriptors left.
  Result<int> wait_fd();

  struct Impl;  ///< private to the implementation

 private:
  friend class Context;
  CompletionQueue(std::shared_ptr<Context::Impl> context, std::shared_ptr<Impl> impl);
  std::shared_ptr<Context::Impl> context_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace nnti
