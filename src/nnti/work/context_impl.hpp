// SPDX-License-Identifier: BSD-3-Clause
// The inside of a Context: buffers, requests, operations, peers. All of it is called with the lock held; context.cpp,
// which implements the public functions, takes it.
//
// Design notes. Endpoint callbacks may come in the middle of any call, so completions and lost peers are noted and
// worked off by settle(), at the end of every call and turn. An operation, which the endpoint or a peer holds by
// address or id, ends exactly once, in finish(); its completion then goes to its request, to a queue, or to the events
// of its buffer.
#pragma once

#include "nnti/transport/registration_check.hpp"
#include "nnti/transport/transport.hpp"
#include "nnti/work/crew.hpp"
#include "nnti/work/inbox.hpp"
#include "nnti/work/rendezvous.hpp"
#include "nnti/work/slab.hpp"
#include "nnti/work/wire.hpp"

#include <base/birth.hpp>
#include <nnti/context.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <thread>
#include <unordered_map>
#include <variant>

namespace nnti {

using Bytes = std::span<std::byte>;

struct CompletionQueue::Impl {
  std::function<void(const Event &)> on_event;  ///< empty: events are taken
  std::deque<Event> events;
  int event_fd = -1, epoll_fd = -1;  ///< once somebody asked for the descriptor
  bool signalled = false, closed = false;
  ~Impl();
};
using QueueImpl = CompletionQueue::Impl;

/// What every function of a closed context gives.
inline Error closed_error() { return {Code::kCancelled, "the context is closed"}; }

struct Context::Impl final : Crew::Work, EventSink {
  const nessie::Birth birth;
  /// A buffer of ours.
  struct Registration {
    BufferHandle handle;
    std::vector<Bytes> segments;
    std::vector<RegisteredBuffer> memory;  ///< one for each segment; empty if no peer may reach them
    std::size_t in_progress = 0;           ///< operations of ours, and arriving messages, that use the memory
    std::optional<Inbox> inbox;            ///< if it receives messages
    std::deque<Event> events;
    std::shared_ptr<QueueImpl> queue;
    std::deque<RequestId> queued_requests;  ///< requests for events, bound to queues, in order
    ProcessId only_for;
    /// Where in the buffer the entering message goes.
    std::uint64_t entering_at() const {
      const bool queue = any(handle.purposes & Purpose::kReceiveQueue);
      return queue ? inbox->element() * handle.element_size : 0;
    }
  };
  /// A work request.
  struct Request {
    /// kIdle: waits for an event of its buffer. kPending: its operation goes on. kReady: has its event. kTaken: the
    /// event was taken, its element is held (requests of buffers only: those of operations end then).
    enum class State { kIdle, kPending, kReady, kTaken };
    std::uint64_t id = 0;
    State state = State::kIdle;
    bool of_buffer = false;
    BufferId buffer;
    std::uint64_t operation = 0;
    bool cancelled = false;
    Event event;
    std::shared_ptr<QueueImpl> queue;
    void reset() {
      const auto kept = id;
      *this = Request();
      id = kept;
    }
  };
  struct Peer {
    std::shared_ptr<const PeerInfo> info;  ///< null until its hello has come
    bool greeted = false;                  ///< we have said ours
    bool is_self = false;                  ///< one of the two ends of a connection to ourselves
  };
  /// How a peer's buffer is reached.
  struct Description {
    Purpose purposes = Purpose::kNone;
    std::vector<RemoteBuffer> segments;
  };
  using DescriptionPtr = std::shared_ptr<const Description>;
  /// Something this process started, or a large message being brought in (kFetch). Lives until its completion.
  struct Operation final : Completion {
    enum class Kind { kSend, kPut, kGet, kAtomic, kFetch, kGroup };
    std::uint64_t id = 0;
    Impl *owner = nullptr;
    Kind kind = Kind::kSend;
    PeerId peer;
    std::uint64_t local = 0;  ///< registration
    std::uint64_t local_offset = 0, length = 0;
    std::uint64_t remote = 0;  ///< registration at the peer
    std::uint64_t remote_offset = 0;
    AtomicOperation atomic;
    std::uint64_t previous = 0;
    std::uint64_t request = 0, group = 0;
    Code code = Code::kOk;
    std::size_t parts = 0;  ///< transfers in the endpoint, or members of a group, not yet ended
    bool asked_again = false, from_cache = false, cancelled = false, withdrawing = false;
    std::vector<RegisteredBuffer> exposed;  ///< of a large message: what the peer reads, or writes
    std::vector<std::byte> gathered;        ///< a large message's bytes, if it is made of many small pieces
    bool large = false;                     ///< kSend: the message is not pushed
    bool sample = false;                    ///< kSend: to be timed
    bool writing = false;  ///< the range from `written` on is being written: by us, or (kFetch) by the peer
    std::uint64_t written = 0, range = 0;  ///< how far writing has come; how much is being written
    std::uint64_t transfer = 0;            ///< kSend: what the receiver calls it
    DescriptionPtr description;
    void on_complete(Status status) override;
    void part_ended(Code how);
    void reset();
  };
  struct DescriptionKey {
    std::uint64_t peer, buffer;
    bool operator==(const DescriptionKey &) const = default;
  };
  struct HashDescriptionKey {
    std::size_t operator()(const DescriptionKey &key) const { return key.buffer ^ key.peer * 0x9e3779b97f4a7c15; }
  };
  /// A description being asked for, and the operations that wait for it.
  struct Asked {
    Description so_far;
    std::vector<std::uint64_t> operations;
  };
  /// A callback that is due: of an atomic variable, or of a queue.
  using Due = std::variant<std::uint64_t, std::pair<std::shared_ptr<QueueImpl>, Event>>;
  /// The lock, for one public function: what it caused is settled, and callbacks run, when it ends.
  class Call {
   public:
    explicit Call(Impl &impl) : impl_(impl), guard(impl.crew.lock()) { impl.enter(); }
    ~Call() { impl_.exit(guard); }
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

   private:
    Impl &impl_;

   public:
    Crew::Guard guard;
  };

  /// Does `what(call)` with the lock, unless the context is closed.
  template <class What> std::invoke_result_t<What, Call &> in_call(What what) {
    Call call(*this);
    if (closed) return closed_error();
    return what(call);
  }

  static constexpr std::uint64_t kVariables = 1;  ///< the id of every context's atomic variables
  static constexpr std::uint64_t kScratch = 2;    ///< of the one that is measured with
  static constexpr std::size_t kScratchBytes = RendezvousTimes::kSizes.back();
  static constexpr std::size_t kMaxSegments = 65536;

  Impl();
  ~Impl() override;
  Status open(ContextOptions options);
  void close();

  // The lock, progress, callbacks (context_impl.cpp).
  void enter();
  void exit(Crew::Guard &guard);
  bool turn(Crew::Guard &guard) override;
  void settle();
  void run_callbacks(Crew::Guard &guard);
  std::function<void()> next_callback();
  void await_callback(Crew::Guard &guard);
  Status to_status(Ended ended) const;
  template <class Done> Status wait_until(Call &call, Deadline deadline, Done done) {
    struct Checked final : Crew::Check {
      explicit Checked(Done &function) : function_(function) {}
      bool done() override { return function_(); }
      Done &function_;
    } check(done);
    return to_status(crew.wait(call.guard, deadline, check));
  }

  // Peers (peers.cpp).
  void on_message(PeerId from, std::span<const std::byte> message) override;
  void on_peer_lost(PeerId peer, const Error &error) override;
  Peer *find_peer(PeerId id);
  std::shared_ptr<const PeerInfo> info_of(PeerId id);
  std::optional<PeerId> connection_to(ProcessId process) const;
  Result<std::shared_ptr<const PeerInfo>> connect(Call &call, std::string_view target, Deadline deadline);
  Result<std::shared_ptr<const PeerInfo>> await_hello(Call &call, PeerId id, Deadline deadline);
  std::shared_ptr<const PeerInfo> connected_at(std::string_view target);
  Status disconnect(ProcessId process);
  void forget_peer(PeerId id, Code code);
  void forget_connection(PeerId id);
  void reject(PeerId id, const char *why);
  Status greet(PeerId id);
  void on_hello(PeerId from, const wire::Control &control, std::span<const std::byte> url);
  void on_control(PeerId from, const wire::Control &control, std::span<const std::byte> payload);
  Status say(PeerId to, wire::Kind kind, wire::Control control, std::span<const std::byte> payload = {});
  Status say_segments(PeerId to, wire::Kind kind, wire::Control control, const Registration &message);
  void say_surely(PeerId to, wire::Kind kind, wire::Control control, std::span<const std::byte> payload = {});
  void flush_outbox();

  // Buffers (buffers.cpp).
  Registration *find_buffer(std::uint64_t id);
  Result<Registration *> own_buffer(BufferId id);
  Result<BufferHandle> add_buffer(std::vector<Bytes> segments, std::uint64_t element_size, std::uint64_t elements,
                                  Purpose purposes, ProcessId only_for, std::optional<RegisteredBuffer> allocated);
  Result<BufferHandle> allocate(std::uint64_t element_size, std::uint64_t elements, Purpose purposes,
                                ProcessId only_for);
  Status reach(Registration &made, std::optional<RegisteredBuffer> allocated, std::optional<PeerId> only_for);
  Status unregister(BufferId id);
  Registration *variables();
  void on_describe(PeerId from, const wire::Control &control);
  Status watch_variable(Call &call, std::uint64_t index, std::function<void()> changed);

  // Operations (operations.cpp).
  Operation &new_operation(Operation::Kind kind, PeerId peer, Registration &local);
  Status launch(Operation &operation, Status started, RequestId *request);
  void drop(Operation &operation);
  void finish(Operation &operation, Code code);
  void complete(Operation &operation, Code code);
  void fail_operations_with(PeerId peer, Code code);
  void tell_target(Operation &operation);
  Status send(ProcessId to, BufferId message, const BufferHandle *destination, RequestId *request);
  Status send_small(Operation &operation, const Registration &message, wire::Kind kind);
  void withdraw(Operation &operation);
  void on_clear(PeerId from, const wire::Control &control);
  void on_sent(PeerId from, const wire::Control &control);

  // Large messages (large_messages.cpp).
  Status send_large(Operation &operation, const Registration &message, const Rendezvous &how);
  void on_write_to(PeerId from, const wire::Control &control, std::span<const std::byte> payload);
  void range_written(Operation &operation, Code code);
  void fetch(Registration &target);
  Status let_write(Operation &operation, Registration &target);
  void on_written(PeerId from, const wire::Control &control);
  void fetched(Registration &target, Code code);
  Result<std::vector<RemoteBuffer>> expose(Operation &operation, std::span<const Bytes> segments, std::uint64_t offset,
                                           std::uint64_t length, Rights rights);

  // Which rendezvous (measuring.cpp).
  struct Measuring;
  Rendezvous rendezvous_in_force(PeerId peer) const;
  Result<Rendezvous> measure_rendezvous(Call &call, ProcessId process, Deadline deadline);
  void begin_measuring(PeerId peer);
  void send_sample();
  void on_sample(Code code);
  void end_measuring(std::optional<std::uint64_t> write_from);
  Code lend_scratch(PeerId peer);
  void forget_sample(Registration &scratch);
  void take_scratch_back(PeerId peer);

  // One-sided operations (access.cpp).
  struct Access {
    Operation::Kind kind;
    std::uint64_t local_offset, length;
    const BufferHandle &remote;
    std::uint64_t remote_offset;
    AtomicOperation atomic = {};
  };
  Result<PeerId> check_access(const Registration &local, const Access &access) const;
  Status start_access(BufferId local, const Access &access, RequestId *request);
  Status start_group(BufferId local, Operation::Kind kind, std::uint64_t length, std::span<const BufferHandle> remotes,
                     RequestId *request);
  Operation &make_access(Registration &local, PeerId peer, const Access &access);
  Status begin(Operation &operation, const BufferHandle *handle);
  Status ask_description(Operation &operation);
  Status ask(const DescriptionKey &key);
  void look_up(const BufferHandle &remote);
  void post(Operation &operation, std::span<const RemoteBuffer> segments);
  /// A range of local memory, and where it begins in the peer's.
  struct Range {
    std::span<const Bytes> segments;
    std::uint64_t offset, length, remote_offset;
  };
  void post_pieces(Operation &operation, bool outward, const Range &local, std::span<const RemoteBuffer> remote);
  void post_atomic(Operation &operation, std::span<const RemoteBuffer> segments);
  bool ask_again(Operation &operation);
  void on_described(PeerId from, const wire::Control &control, std::span<const std::byte> payload);
  void described(Asked asked, DescriptionKey key, Code code);
  void on_forget(PeerId from, const wire::Control &control);
  void on_accessed(PeerId from, const wire::Control &control);

  // Messages that arrive (arrivals.cpp).
  void on_send(PeerId from, const wire::Control &control, std::span<const std::byte> payload);
  void on_resend(PeerId from, const wire::Control &control, std::span<const std::byte> payload);
  void on_withdraw(PeerId from, const wire::Control &control);
  Code check_arrival(const Registration *target, PeerId from, std::uint64_t length);
  void deliver(Registration &target, std::span<const std::byte> payload);
  void delivered(Registration &target);
  void pump(Registration &target);
  void answer_send(PeerId to, std::uint64_t operation, Code code);

  // Completions (completions.cpp, queue.cpp).
  void add_event(Registration &buffer, Event event);
  void to_queue(const std::shared_ptr<QueueImpl> &queue, Event event);
  void feed_requests(Registration &buffer);
  void release(Registration &buffer, std::uint32_t element);
  Result<Request *> find_request(RequestId id) const;
  void give_back(Request &request);
  Status cancel(Request &request);
  void cancel(Operation &operation);
  Status check(BufferId id, Purpose purposes);
  Status check(RequestId id, Purpose purposes);
  bool gone(BufferId id) { return find_buffer(id.value) == nullptr; }
  bool gone(RequestId id) const;
  bool ready(BufferId id, Purpose purposes);
  bool ready(RequestId id, Purpose purposes);
  Event take(BufferId id, Purpose purposes);
  Event take(RequestId id, Purpose purposes);
  template <class Id> Status check_list(std::span<const Id> ids, Purpose purposes);
  template <class Id>
  Result<std::size_t> wait_any(Call &call, std::span<const Id> ids, Purpose purposes, Deadline deadline, Event &event);
  template <class Id>
  Status wait_all(Call &call, std::span<const Id> ids, Purpose purposes, Deadline deadline, std::span<Event> events);
  Status bind(const std::shared_ptr<QueueImpl> &queue, BufferId id);
  Status bind(const std::shared_ptr<QueueImpl> &queue, RequestId id);
  void close_queue(Call &call, const std::shared_ptr<QueueImpl> &queue);
  Result<int> watch(const std::shared_ptr<QueueImpl> &queue);
  void signal(QueueImpl &queue);
  void arm_descriptors();
  void disarm_descriptors();

  Crew crew{*this};
  ProcessId me;
  const std::uint64_t self_secret = nessie::random_u64() | 1;  ///< by it we know that a greeting is our own
  std::string url;
  std::size_t variable_count = 0;
  bool closed = false, dirty = false;
  RendezvousSettings rendezvous;
  std::uint64_t eager_max = 0;

  std::unordered_map<std::uint64_t, Peer> peers;
  std::unordered_map<std::uint64_t, PeerId> by_process;
  std::unordered_map<std::uint64_t, Registration> buffers;
  std::uint64_t receive_queue = 0;
  Slab<Operation> operations;
  Slab<Request> requests;
  std::unordered_map<DescriptionKey, DescriptionPtr, HashDescriptionKey> descriptions;
  std::unordered_map<DescriptionKey, Asked, HashDescriptionKey> asked;
  std::unordered_map<std::uint64_t, std::function<void()>> watched_variables;
  std::shared_ptr<Measuring> measuring;   ///< null: nothing is measured now
  std::optional<PeerId> scratch_user;     ///< who measures with us
  std::vector<std::byte> scratch_memory;  ///< of the buffer kScratch
  std::deque<std::pair<PeerId, std::vector<std::byte>>> outbox;
  std::vector<std::uint64_t> finished;  ///< operations whose last part has ended
  std::vector<std::pair<PeerId, Code>> lost;
  std::vector<std::byte> scratch;  ///< a message being put together
  std::deque<Due> due;
  std::thread::id callback_thread;  ///< who runs callbacks now
  std::uint64_t callbacks_run = 0;
  std::condition_variable callback_ended;
  std::vector<std::shared_ptr<QueueImpl>> watched_queues;  ///< those with a descriptor
  int progress_fd = -1;                                    ///< readable: progress is needed at once
  bool armed = false;
  std::unique_ptr<Endpoint> endpoint;  ///< last: closed first, while what it calls back into still lives
};

// --- ranges of segments ---

/// offset + length within size, without overflow.
constexpr bool inside(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return offset <= size && length <= size - offset;
}
/// Calls visit(piece) for the pieces of [offset, offset + length) of `segments`, in order.
template <class Visit>
void for_each_piece(std::span<const Bytes> segments, std::uint64_t offset, std::uint64_t length, Visit visit) {
  for (const auto &segment : segments) {
    if (length == 0) return;
    if (offset >= segment.size()) {
      offset -= segment.size();
      continue;
    }
    const auto size = std::min<std::uint64_t>(length, segment.size() - offset);
    visit(segment.subspan(offset, size));
    offset = 0;
    length -= size;
  }
}

Rights rights_for(Purpose purposes);
/// Whether sizes and purposes of a buffer to be registered make sense.
Status check_new_buffer(const BufferHandle &wanted);

}  // namespace nnti
