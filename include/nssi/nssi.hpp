// SPDX-License-Identifier: BSD-3-Clause
// NSSI, the Network Scalable Service Interface, in C++: asynchronous remote procedure calls in which the server directs
// all bulk data. Nessie paper, sections 3 and 5. The C interface of the paper (nssi/nssi.h) is a thin face of this one.
//
// A request says what is wanted and, where there is bulk data, where the client's buffer is; it is small and goes at
// once. The server's handler pulls (get_data) or pushes (put_data) the data when it is ready, then sends the result.
// Arguments and results are XDR (src/xdr). Those that do not fit a message are left registered at the sender and
// fetched by the receiver.
#pragma once

#include <nnti/nnti.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace nessie {
class Budget;
}

namespace nssi {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nnti::PeerId;
using Bytes = std::vector<std::byte>;
/// The number of an operation within its interface; RFC 5531 calls it a procedure.
using OpCode = std::uint32_t;

/// What a service offers, as an interface file names it: `program ... = program`, `version ... = version`. RFC 5531,
/// section 8.
struct Interface {
  std::uint32_t program = 0, version = 0;
  bool operator==(const Interface &) const = default;
};

/// Where calls go: one of the instances of an interface that a process offers, told apart by their provider numbers.
struct Service {
  PeerId peer;
  Interface interface;
  std::uint32_t provider = 0;
  bool operator==(const Service &) const = default;
};

/// Writes arguments, or a result, into memory of exactly their size. Called at most once, before what it is given to
/// returns. What it throws ends the call with kInternal.
using Encoder = std::function<void(std::span<std::byte>)>;

class Core;
class Engine;
class Event;
class TransferState;
struct CallState;
struct EventState;
struct Statistics;

/// A transfer of a request's data that was begun (Request::start_get, start_put). Move-only; used by one fiber at a
/// time; not to outlive its request. Dropping it waits for its end. One that was interrupted by the loss of the
/// connection goes on when it is waited for, or tested, and the caller is back.
class Transfer {
 public:
  Transfer();
  Transfer(Transfer &&) noexcept;
  Transfer &operator=(Transfer &&) noexcept;
  ~Transfer();
  /// True once it has ended. In a fiber of the driver's, others have a turn; short handlers drive progress.
  bool test();
  /// Outcome as that of get_data() or put_data(). kTimedOut, if `deadline` is before the request's: it goes on, and can
  /// be waited for again.
  Status wait(Deadline deadline = Deadline::never());

 private:
  friend class IncomingRequest;
  explicit Transfer(std::unique_ptr<TransferState> state);
  std::unique_ptr<TransferState> state_;
};

/// What a caller has proved: kUser has the job's credential, as everybody who connects; kOperator the operators', too
/// (RuntimeOptions::operators).
enum class Role { kUser, kOperator };

/// A request as its handler sees it. Lives until the handler returns; a handler that returns without having replied
/// gives the caller kNoResult.
class Request {
 public:
  virtual ~Request() = default;
  /// The connection over which it came, or came again, as Runtime::disconnect() takes it.
  virtual PeerId caller() const = 0;
  /// What that connection has proved.
  virtual Role role() const = 0;
  /// The caller's process, whatever connection it comes by: random, the same for as long as that runtime lives.
  virtual std::span<const std::byte, 16> caller_identity() const = 0;
  virtual OpCode op() const = 0;
  /// Valid while the request lives. Where the operation `reads_args_once` they may be the caller's memory, which the
  /// caller can change.
  virtual std::span<const std::byte> args() const = 0;
  /// Size of the caller's bulk data, parts of buffers being one range; 0 if there are none.
  virtual std::uint64_t data_bytes() const = 0;
  /// Pulls data[offset, offset+destination.size()) of the caller. Suspends the handler's fiber (a short handler blocks
  /// the progress thread instead) until the bytes can be read here. kInvalidArgument: there are no data, or the request
  /// has been answered. kOutOfRange: not all within the data. kRefused: the caller's rights do not allow it. In these
  /// cases nothing was moved. kPeerLost: the caller has gone, and has not come back for `nssi.reconnect`. kCancelled:
  /// it has cancelled the call, or the runtime is being destroyed. kTimedOut: past the request's deadline; the
  /// connection is then ended if the transfer was under way.
  virtual Status get_data(std::span<std::byte> destination, std::uint64_t offset = 0) = 0;
  /// The caller's data, read where they lie, if this process can map them: the caller has made the buffer with
  /// allocate() and is on this node, and they are in one part. Null otherwise. Valid while the request lives, even if
  /// the caller dies meanwhile.
  virtual const nnti::PeerView *view_data() const { return nullptr; }
  /// What the caller gave under `key` by Runtime::give_descriptor() before it sent the request, once: with the access
  /// that the caller has, which may be another user's, in another mount name space. The handler closes it. On the
  /// progress thread; errors as nnti::Endpoint::take_descriptor.
  virtual Result<int> take_descriptor(std::uint64_t key) = 0;
  /// Gives the caller a copy of an open descriptor: once it has this request's result, it finds it by
  /// Runtime::take_descriptor(). `descriptor` stays the handler's. On the progress thread; errors as
  /// nnti::Endpoint::give_descriptor.
  virtual Status give_descriptor(std::uint64_t key, int descriptor) = 0;
  /// Pushes `source` into data[offset, …) of the caller. ok: visible to the caller before the result of this request.
  /// Errors as get_data().
  virtual Status put_data(std::span<const std::byte> source, std::uint64_t offset = 0) = 0;
  /// The same, begun and not waited for, so that several are under way together, and with work. `destination`
  /// (`source`) is borrowed until the transfer has ended. Errors are reported by the transfer's wait(). A reply waits
  /// for all that were begun.
  virtual Transfer start_get(std::span<std::byte> destination, std::uint64_t offset = 0) = 0;
  virtual Transfer start_put(std::span<const std::byte> source, std::uint64_t offset = 0) = 0;
  /// Transfers begun from now on give up (kTimedOut, and with them the peer) at `limit`, if the request's deadline is
  /// later.
  virtual void limit_transfers(Deadline limit) { (void)limit; }
  /// Sends the result; at most once, kExists after that. kPeerLost: the caller is gone, which is no fault of a handler.
  virtual Status reply(std::span<const std::byte> result = {}) = 0;
  /// The same, of `size_bytes` that `encode` writes, where possible to where the caller fetches them.
  /// kInternal, and the call ends with it: `encode` threw.
  virtual Status reply(std::size_t size_bytes, const Encoder &encode) = 0;
  virtual Status reply_error(const Error &error) = 0;
  /// When the caller stops waiting.
  virtual Deadline deadline() const = 0;
  /// Whether somebody still waits for the result, for handlers that take long: ok, or kCancelled: the caller has
  /// cancelled the call, or the runtime is being destroyed. kTimedOut: past deadline(). kPeerLost: the caller has gone,
  /// and has not come back for `nssi.reconnect`. Nobody waits for a one-way call from the beginning: that one goes on.
  /// Costs a reading of a clock; does not drive progress, from which a handler hears of its caller: one in a pool hears
  /// at any time, one on the driver's thread after it has waited for something. Any thread.
  virtual Status check() const = 0;
  /// As event.wait(deadline), and ends as soon as nobody waits for the result: errors as Event::wait() and check().
  virtual Status wait(Event &event, Deadline deadline = Deadline::never()) = 0;
  /// Suspends the fiber until `until`, or as long as somebody waits for the result: errors as check().
  /// kInvalidArgument: not inside a fiber of the runtime.
  virtual Status sleep_until(Deadline until) = 0;
};

using Handler = std::function<void(Request &)>;

/// kFiber: the handler is a user-level thread and may block in straight-line code (get_data, Event::wait, offload)
/// without holding up other requests. kShort: it runs to completion where the request arrived, without a switch. kBulk:
/// as kFiber, for work that takes long and that nobody waits for: begun, one at a turn, when no request has arrived for
/// a while (RuntimeOptions::bulk_quiet), so that it does not take the processors from those who are about to wait.
/// kBulkNow: its caller waits: begun after the bulk handlers that arrived before, none of which is held back any more.
enum class HandlerKind { kFiber, kShort, kBulk, kBulkNow };

/// Of handlers that could begin or go on: the higher goes first, those alike in order of arrival, but where they wait
/// for a fiber, for a pool's thread, or for others that compute: of each caller one in turn. The lower are not
/// forgotten: one in sixteen turns is theirs.
enum class Priority { kLow, kNormal, kHigh };

/// Threads of their own for handlers that compute long, or block. Their handlers run beside those of other pools, and
/// beside each other if there are several threads, and may use everything that any thread may use.
struct PoolOptions {
  std::string name;
  std::size_t threads = 1;
  std::string cores = {};  ///< "0-3,8": those that they run on; empty: any
  /// Handlers begin in the order in which their requests came, whatever their priority, and whoever calls.
  bool in_order = false;
};

/// One operation that a process offers.
struct Operation {
  Interface interface;
  std::uint32_t provider = 0;
  OpCode op = 0;
  std::string name;  ///< for errors and statistics
  HandlerKind kind = HandlerKind::kFiber;
  Handler handler;
  /// If there is one, called in place when a request arrives, long before the handler perhaps: to take note of it. Not
  /// for requests whose arguments are not inline. What it throws is logged; the handler runs all the same.
  Handler arrival = {};
  /// The handler reads each byte of args() once, before it relies on any of them: then long ones need not be copied
  /// first, but for one-way calls. Their caller may change them at any moment.
  bool reads_args_once = false;
  /// Which pool's threads run it; empty: the thread that drives. Only for handlers of kind kFiber. The configuration
  /// goes first: `nssi.op.NAME.pool` and `nssi.op.NAME.priority`.
  std::string pool = {};
  Priority priority = Priority::kNormal;
  /// What its callers must have proved; others get kRefused. `nssi.op.NAME.role` goes first.
  Role role = Role::kUser;
};

/// How much of a service may be in progress at once, for all its callers and for each of them. 0: no limit. A request
/// for which there is no room is turned away: it waits at its caller until the service invites it, or its call ends
/// with kBusy (CallOptions::when_busy). Callers are invited in turn, one request each. A request that alone is larger
/// than a limit is let in where there is nothing else.
struct Limits {
  /// Until their handler has ended; results that do not fit a message count as requests, too, until their caller has
  /// fetched them.
  std::uint64_t requests = 65536, requests_of_caller = 16384;
  /// Of arguments until their handler has ended, and of results that do not fit a message until their caller has
  /// fetched them. A request without a result is charged for what those of its operation usually take.
  std::uint64_t bytes = std::uint64_t{4} << 30, bytes_of_caller = std::uint64_t{1} << 30;
};

/// A call in progress. Move-only. Dropping it before it is complete cancels it: blocks until the server can no longer
/// touch the data buffer, or the deadline of the call has passed.
class Call {
 public:
  Call() = default;
  Call(Call &&other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Call &operator=(Call &&other) noexcept {
    Call taken(std::move(other));
    std::swap(taken.state_, state_);
    return *this;
  }
  ~Call() {
    if (state_ != nullptr) drop();
  }
  /// True once the result, or an error, is here. Drives progress.
  bool test();
  /// Waits for the result. ok, or the error that the handler replied with, or: kTimedOut (the call stays in progress
  /// and can be waited for again until its own deadline has passed), kPeerLost, kNotFound (unknown operation),
  /// kBadMessage (the server could not decode the arguments), kNoResult, kRefused (the operation is for operators).
  Status wait(Deadline deadline = Deadline::never());
  /// The result's bytes, after wait() returned ok; valid until the call is dropped.
  std::span<const std::byte> view() const;
  /// A copy of the result's bytes, after wait() returned ok.
  Bytes result() const { return {view().begin(), view().end()}; }
  /// True: wait() returns at once. Drives nothing.
  bool is_over() const;
  /// Ends it with kCancelled, which wait() gives from then on; the service may have acted. Blocks as dropping it does.
  /// A call that is over, or whose result is about to be here, ends as it would have.
  void cancel();
  /// Calls `callback` once, on a fiber of the runtime's, when the call is over, or soon if it is: it may wait, and make
  /// calls. Not if the call is dropped before. One for each call; a deadline that passes ends the call then, too, as
  /// long as somebody drives.
  void when_over(std::function<void()> callback);

  /// `co_await std::move(call)` gives what wait() returns. The coroutine goes on on a fiber of the runtime's.
  auto operator co_await() &&;

 private:
  friend class Runtime;
  friend Result<std::size_t> wait_any(std::span<Call *const> calls, Deadline deadline);
  struct Watcher;
  explicit Call(CallState *state) : state_(state) {}
  void drop();
  static std::optional<std::size_t> first_over(std::span<Call *const> calls);
  static void set_watch(std::span<Call *const> calls, Core &core, struct Watch *watch);
  CallState *state_ = nullptr;  ///< the runtime's until the Call is dropped; the Call's if the runtime goes before
};

/// A part of a registered buffer.
struct Part {
  static constexpr std::uint64_t kRest = ~std::uint64_t{0};
  const nnti::RegisteredBuffer *buffer = nullptr;  ///< null: the call's `data`
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = kRest;  ///< kRest: to the end of the buffer
};

/// Waits until one of the calls is over: its place. Those that are over already count, null pointers do not. Calls of
/// several runtimes are looked at in turns, every 200 µs. kTimedOut: none was over within the deadline. kCancelled: a
/// runtime is being destroyed. kInvalidArgument: there is none to wait for.
Result<std::size_t> wait_any(std::span<Call *const> calls, Deadline deadline = Deadline::never());
Result<std::size_t> wait_any(std::span<Call> calls, Deadline deadline = Deadline::never());
/// Waits for all of them; each one's wait() then returns at once. ok if all are; otherwise the error of the first that
/// is not, kTimedOut if it was still in progress.
Status wait_all(std::span<Call> calls, Deadline deadline = Deadline::never());
Status wait_all(std::span<Call *const> calls, Deadline deadline = Deadline::never());  ///< null pointers do not count

struct CallOptions {
  /// Bulk data that the server may pull or push, by the buffer's rights; borrowed until the call completes.
  const nnti::RegisteredBuffer *data = nullptr;
  /// If there are any, the handler sees these, one after the other, as one range, instead of the whole of `data`: at
  /// most 65,536. Their buffers are borrowed likewise. A part is what the handler sees, and no wall: who may reach it
  /// may reach the whole buffer. kOutOfRange: a part is not within its buffer.
  std::vector<Part> parts = {};
  /// When the call gives up; NESSIE_NSSI_TIMEOUT (30 s) if not given.
  std::optional<Deadline> deadline;
  /// Carrying it out twice does no harm: it is sent again also to a service that was started anew meanwhile.
  bool idempotent = false;
  /// If the service has no room for it (Limits). kWait: the call waits here, within its deadline, and those after it to
  /// that service behind it. kFail: it ends with kBusy; the error's retry_after says when there may be room.
  enum class WhenBusy { kWait, kFail } when_busy = WhenBusy::kWait;
  /// Its result is not wanted. The call is over, with an empty result, when its handler begins; dropping it before does
  /// not cancel it. Not with `data` or `parts`.
  bool one_way = false;
  /// Called once when the call is over, also if it was dropped, on the thread that drives: for callers with an event
  /// loop of their own. It must not wait, nor touch the call; Call::when_over() is for those that want to. What it
  /// throws is logged.
  std::function<void()> on_over = {};
};

struct RuntimeOptions {
  /// What its `config` and `credential` do not say comes from the environment, and from the file that NESSIE_CONFIG
  /// names.
  nnti::EndpointOptions endpoint;
  std::size_t fiber_stack_bytes = std::size_t{128} * 1024;
  /// Handlers running or suspended at once; requests beyond wait for one of them to end. A caller with at most a 128th
  /// of that (eight) in progress does not wait: others cannot take all from it.
  std::size_t max_fibers = 1024;
  /// How long requests must have been absent before bulk handlers begin, and how long the oldest is held back at most.
  std::chrono::microseconds bulk_quiet{0}, bulk_longest_hold{20000};
  /// Proved to the services that this runtime connects to, and demanded for operations of operators'. Setting
  /// `operator_credential`, if there is none. Without it, operations of operators' are refused to everybody.
  std::optional<nessie::Credential> operators;
  /// On SIGHUP the file of the configuration is read anew, and reconfigure()d. For one runtime of a process (kExists).
  /// The setting `nssi.reload_on_hangup` asks for it, too: for the first that listens.
  bool reload_on_hangup = false;
  /// Besides those that the configuration names (`nssi.pools`).
  std::vector<PoolOptions> pools;
  /// Of each of its services; `nssi.limit.*` go first.
  Limits limits;
  /// Of the process, which outlives the runtime: the memory that this keeps for its next long messages has an account
  /// there, and goes when others are short. Null: none.
  nessie::Budget *budget = nullptr;
  /// What a process that hosts this says of it: called each time that statistics are asked for, like a callback.
  std::function<void(Statistics &)> add_to_statistics = {};
};

/// A flag that a handler's fiber can wait for. set() may come from any thread.
class Event {
 public:
  explicit Event(class Runtime &runtime);
  ~Event();
  Event(const Event &) = delete;
  void set();
  /// Suspends the fiber until set() or the deadline (kTimedOut), though the caller that a handler works for may be
  /// gone: Request::wait() ends then. Only inside a fiber of the runtime: kInvalidArgument elsewhere. kCancelled: the
  /// runtime is being destroyed; whoever may call set() must have finished by then.
  Status wait(Deadline deadline = Deadline::never());

 private:
  friend class IncomingRequest;
  std::shared_ptr<EventState> state_;
};

/// Client and server side of one process: an endpoint, the operations it serves, the calls it makes.
/// Threads: all functions may be called from any thread; handlers, and callbacks, run on the thread that drives
/// progress (the one in run(), or, in a process that only calls, the ones in wait() and test()).
class Runtime {
 public:
  /// Errors as nnti::Endpoint::open, and kInvalidArgument: a setting cannot be read. kNotFound: NESSIE_CONFIG names no
  /// file. kExists: another runtime of the process reloads on SIGHUP. kNoMemory: no thread for a pool. kIo: the folder
  /// for traces cannot be written, or nobody can listen where the page for Prometheus is to be.
  static Result<std::unique_ptr<Runtime>> open(RuntimeOptions options);
  /// Stops, cancels outstanding calls (kCancelled), makes whatever suspends a fiber return kCancelled until all fibers
  /// have ended, closes the endpoint. No other thread may be inside a function of the runtime. In a child of fork() it
  /// leaves everything, which is its parent's, as it is; so do registered buffers, and calls that are not over.
  /// Handlers in pools' threads are waited for, for nssi.timeout at most; who blocks for longer is left behind, with
  /// all that it uses of the runtime, and its own objects must stay.
  ~Runtime();

  /// Where it can be reached: URLs joined by ';'; empty if it only connects. Any thread; lives as long as the runtime.
  const std::string &url() const;
  /// For the thread that drives progress only.
  nnti::Endpoint &endpoint();

  // --- services -----------------------------------------------------------------------------------------------------
  /// Any thread, also while requests are served: those that come from then on find it. kExists: this provider of the
  /// interface has an operation of that number. kNotFound: there is no such pool. kInvalidArgument: a pool for a
  /// handler that is not of kind kFiber; a setting that cannot be read.
  Status add_operation(Operation operation);
  /// For all services of this process, those to come included. Any thread. Requests that were accepted stay.
  void set_limits(const Limits &limits);
  /// For one service, whatever is said of all, or in the configuration. kNotFound: it has no operations yet.
  Status set_limits(const Interface &interface, std::uint32_t provider, const Limits &limits);
  /// What this process offers by now: a line for each provider of an interface, in the order in which they were added;
  /// `peer` is unset. Any thread.
  std::vector<Service> services() const;
  /// What the configuration that the runtime was opened with says, as of now. Any thread.
  std::optional<std::string> setting(const std::string &name) const;
  /// Has all that was traced until now (`nssi.trace`) in the process's file; without, that is so within 50 ms, as long
  /// as the runtime is driven, and when it is destroyed. Any thread.
  void flush_trace();
  /// What was counted until now (nssi/statistics.hpp); `nssi.statistics` turns it off. Any thread.
  Statistics statistics();
  /// Called on the progress thread when a peer connected, or died or left and did not come back; like operations' until
  /// the runtime is destroyed. All that were added are called, in that order; what they throw is logged. Any thread.
  void on_peer_connected(std::function<void(PeerId)> callback);
  void on_peer_lost(std::function<void(PeerId, const Error &)> callback);
  /// Drives progress until stop(): serves requests, runs fibers.
  void run();
  /// Makes run() return after the current turn. Any thread; async-signal-safe.
  void stop();
  /// Takes over what a configuration says of `nssi.timeout`, `nssi.reconnect`, `nssi.keep_answers`, `nssi.max_long`,
  /// `nssi.limit.*` and operations' priorities and roles; where it says nothing, what the program says holds. Pools
  /// stay as they are. Any thread. kInvalidArgument: a setting cannot be read; nothing was changed.
  Status reconfigure(const nessie::Config &config);
  /// Refuses new requests (kUnavailable), and makes run() return when those that were accepted have been answered and
  /// their callers have the results, at the latest at `deadline`. The next run() takes requests again. Any thread;
  /// async-signal-safe.
  void stop_when_done(Deadline deadline);
  /// Starts a fiber on the progress thread that belongs to no request. Any thread.
  void spawn(std::function<void()> work);
  /// Runs `work` on the progress thread's next turn, not in a fiber. Any thread.
  void post(std::function<void()> work);
  /// Begins the bulk handlers that are held back now: somebody waits for one of them. On the progress thread.
  void hasten_bulk();
  /// Suspends the calling fiber for a time.
  void sleep_until(Deadline deadline);
  /// True when called from within a fiber of this runtime.
  bool in_fiber() const;
  /// Tells the calling fiber from all others that have not ended; null: this is none of this runtime.
  const void *current_fiber() const;

  // --- clients ------------------------------------------------------------------------------------------------------
  /// As nnti::Endpoint::connect. If the connection is lost, it is made again for up to NESSIE_NSSI_RECONNECT (1 s), and
  /// what was in progress goes on, nothing being carried out twice; the id stays the same. A service that was started
  /// anew cannot know what was carried out before: calls that it may concern end with kPeerLost, unless they are
  /// idempotent. Peers that connected to us are not connected to again.
  Result<PeerId> connect(std::string_view url, Deadline deadline, const std::stop_token &stop = {});
  /// Calls in progress end with kCancelled.
  void disconnect(PeerId peer);
  /// Arguments of up to this size fit the request; larger ones lie here until the service has fetched them, as smaller
  /// ones may where the service can read this process's memory.
  std::size_t max_inline_args(PeerId service);
  /// As nnti::Endpoint::can_view.
  bool can_view(PeerId peer);
  /// As nnti::Endpoint::give_descriptor: for handlers of `peer`, from any call on that is begun afterwards. Any thread.
  Status give_descriptor(PeerId peer, std::uint64_t key, int descriptor);
  /// What a handler of `peer` gave under `key` by Request::give_descriptor() before it replied, once; the caller closes
  /// it. Any thread. Errors as nnti::Endpoint::take_descriptor; kPeerLost also if the connection was lost meanwhile,
  /// and with it what was given.
  Result<int> take_descriptor(PeerId peer, std::uint64_t key);
  /// As nnti::Endpoint::can_give_descriptors and process_of. Any thread.
  bool can_give_descriptors(PeerId peer);
  Result<pid_t> process_of(PeerId peer);
  /// Whether requests for `peer` still wait here, and not in its inbox.
  bool has_unsent(PeerId peer);
  /// As those of nnti::Endpoint. Any thread; but a buffer is dropped by the thread that drives progress, or by
  /// unregister_memory().
  Result<nnti::RegisteredBuffer> register_memory(std::span<std::byte> memory, nnti::Rights rights);
  Result<nnti::RegisteredBuffer> allocate(std::size_t size_bytes, nnti::Rights rights);
  /// Drops a buffer from a thread that does not drive progress, where its destructor must not run.
  void unregister_memory(nnti::RegisteredBuffer buffer);
  /// Sends a request; returns at once. An error that is known already (peer lost) is reported by the call's wait().
  /// `args` is copied. Inside a fiber, Call::wait suspends the fiber only.
  Call call(const Service &service, OpCode op, std::span<const std::byte> args, const CallOptions &options = {});
  /// The same, of `size_bytes` of arguments that `encode` writes, where possible to where the service fetches them.
  Call call(const Service &service, OpCode op, std::size_t size_bytes, const Encoder &encode,
            const CallOptions &options = {});
  /// The same request to several services: a call for each, in their order.
  std::vector<Call> multicast(std::span<const Service> services, OpCode op, std::span<const std::byte> args,
                              const CallOptions &options = {});

 private:
  friend class Event;
  friend class Memory;
  explicit Runtime(std::unique_ptr<Engine> engine);
  Status show();
  std::shared_ptr<void> inspection_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<class PageServer> page_;  // ends first: it asks the engine
};

inline auto Call::operator co_await() && {
  struct Awaiter {
    Call call;
    bool await_ready() const { return call.is_over(); }
    void await_suspend(std::coroutine_handle<> rest) {
      call.when_over([rest] { rest.resume(); });
    }
    Status await_resume() { return call.wait(); }
  };
  return Awaiter{std::move(*this)};
}

}  // namespace nssi
