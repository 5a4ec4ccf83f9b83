// SPDX-License-Identifier: BSD-3-Clause
// The calling side: calls in progress, found by the id that travels with them. Used by the driver, unless said.
#pragma once

#include <nssi/call/link.hpp>
#include <nssi/drive/blocks.hpp>
#include <nssi/nssi.hpp>
#include <nssi/observe/counters.hpp>
#include <nssi/observe/tracer.hpp>
#include <nssi/wire/payload.hpp>
#include <nssi/wire/segments.hpp>
#include <nssi/wire/wire.hpp>

#include <atomic>
#include <deque>
#include <map>

namespace nssi {

class Client;
struct Strand;

/// Of several calls at once: `done` with the first that is over.
struct Watch {
  std::atomic<bool> done{false};
  Strand *waiter = nullptr;
};

/// A call. Its table keeps it, for the next call when this one is over; a Call borrows it, and gets it if the runtime
/// ends first.
struct CallState final : nnti::Completion {
  void on_complete(Status status) override;  ///< of fetching a long result

  /// kWaiting: for its link. kHeld: for its service's invitation.
  enum class Phase { kNew, kWaiting, kHeld, kSent, kCancelling, kFetching, kDone };
  /// Whether its request has more than arguments that fit a message.
  bool carries_more() const { return data != nullptr || parts || long_args || fails_when_busy || is_one_way || trace; }
  Client *client = nullptr;  ///< nullptr after the runtime is gone
  std::uint64_t id = 0;      ///< high half: how often the slot was used; low half: the slot
  Service service;
  PeerId connection;       ///< on which it was sent
  std::uint64_t turn = 0;  ///< rises from call to call
  OpCode op = 0;
  Deadline deadline = Deadline::never();
  std::uint32_t timeout_ms = 0;  ///< the same, for the wire
  std::atomic<bool> done{false};
  Strand *waiter = nullptr;
  Phase phase = Phase::kNew;
  bool fetching = false;  ///< `long_result` is lent to the transport
  bool is_held = false;   ///< by a Call
  bool lends = false;     ///< the server may reach the data buffer or the arguments
  bool was_sent = false;  ///< over a connection that is gone
  bool is_idempotent = false;
  bool fails_when_busy = false, is_one_way = false;
  bool was_turned_away = false;  ///< the service expects it, and will invite it
  const nnti::RegisteredBuffer *data = nullptr;
  std::unique_ptr<PartList> parts;  ///< instead of the whole of `data`
  Status status;                    ///< the outcome; while cancelling, the one to be
  Bytes result;
  Bytes args;  ///< that may have to be sent again
  std::optional<Block> long_args, long_result;
  std::optional<Block> long_segments;  ///< where the parts are, if that does not fit the message
  bool is_answered = false;            ///< the service needs no arguments of it any more
  std::function<void()> on_over;
  std::shared_ptr<std::function<void()>> callback;  ///< of Call::when_over()
  std::optional<std::multimap<nessie::Clock::time_point, std::uint64_t>::iterator> expiry;
  bool is_overdue = false;  ///< it was told to end, and gets a while for that
  Watch *watch = nullptr;
  CallMeter meter;
  TracedWork trace;
};

class Client final : public LinkEvents {
 public:
  explicit Client(Core &core);
  Core &core() const { return core_; }

  // --- any thread ---------------------------------------------------------------------------------------------------
  CallState *start(const Service &service, OpCode op, const Payload &args, const CallOptions &options);
  /// Ends a call that is in progress with the outcome `why`: waits until the server can no longer reach what the call
  /// lends, or until `patience` is over.
  void cancel(CallState &call, const Error &why, Deadline patience);
  /// The same, of a call whose deadline has passed.
  void time_out(CallState &call);
  /// Sets what is called when the call is over, and sees to it that its deadline ends it.
  void set_callback(CallState &call, std::function<void()> callback);
  /// It is not called any more, unless it has begun.
  void forget_callback(CallState &call);
  /// Takes back the state of a call that is over.
  void release(CallState &call);

  // --- the driver ---------------------------------------------------------------------------------------------------
  void on_result(PeerId from, std::uint64_t id, std::span<const std::byte> message);
  void on_cancelled(PeerId from, std::uint64_t id);
  void on_busy(PeerId from, std::uint64_t id, std::span<const std::byte> message);
  void on_invited(PeerId from, std::span<const std::byte> message);
  void on_welcome(PeerId from, std::span<const std::byte> message);
  /// True: the connection is made again, and the calls wait for that, for so long at most.
  bool on_peer_lost(PeerId peer, const Error &error, std::chrono::milliseconds patience);
  void on_fetched(CallState &call, Status status);
  /// Ends the calls for which nobody waits, and whose deadline has passed.
  void expire();
  Deadline next_expiry() const {
    return expiries_.empty() ? Deadline::never() : Deadline::at(expiries_.begin()->first);
  }
  void finish_all(const Error &error);
  /// The runtime is going: no state may use it any more.
  void detach_all();
  /// Requests to a new link wait until it is proved to be an operator's.
  void introduce(PeerId name);
  const AllCallCounters &counters() const { return counters_; }
  Links &links() { return links_; }
  const Links &links() const { return links_; }
  /// The calls to whom callers know as `name` end, also those that wait for a connection.
  void drop_link(PeerId name, const Error &why);

 private:
  /// Calls to a service that is busy, in their order: those that it has turned away, and behind them those that were
  /// not sent therefore.
  struct Hold {
    Service service;
    std::deque<CallState *> calls;
  };
  /// A call, and the id that it has as long as it has not ended: what is called back may drop any.
  struct Named {
    std::uint64_t id;
    CallState *call;
  };
  void on_link_connected(Link &link) override;
  void on_link_given_up(Link &link, const Error &why) override;
  void expire(CallState &call);
  void expire_at(CallState &call, Deadline deadline);
  void end_expiry(CallState &call);
  void call_back(CallState &call);
  Hold *hold_of(const Service &service);
  void hold(CallState &call);
  void send_held_behind(const Service &service);
  void take_out(CallState &call);
  void send_again(CallState &call);
  void finish_waiting(PeerId name, const Error &why);
  void resume(Link &link, bool is_another_process);
  template <class Use> void for_each_in_progress(Use use);
  std::unique_ptr<CallState> make_state();
  CallState &claim(std::unique_ptr<CallState> state);
  bool has_greeted(PeerId peer) const { return peer.value < greeted_.size() && greeted_[peer.value] != 0; }
  Status greet(PeerId peer);
  void send(CallState &call, const Payload &args);
  void transmit(CallState &call);
  Status send_plain_request(CallState &call);
  Status send_request(CallState &call);
  Status describe(CallState &call, wire::Request &request, Bytes &list);
  bool goes_along(const CallState &call, std::size_t args_bytes) const;
  Status take_arguments(CallState &call, const Payload &args);
  Status keep(CallState &call, const Payload &args);
  Status lend(CallState &call, const Payload &args);
  Status place_segments(CallState &call);
  Status describe_parts(CallState &call, wire::Request &request, Bytes &list);
  void begin_cancel(CallState &call, const Error &why);
  void fetch(CallState &call, const nnti::RemoteBuffer &remote);
  void finish(CallState &call, Status status);
  void take_back_lent(CallState &call);
  void drop(CallState &call);
  void recycle(CallState &call);
  CallState *find(PeerId from, std::uint64_t id);
  void begin_trace(CallState &call);
  void end_trace(CallState &call);
  void measure(CallState &call, const Link *link, std::uint64_t args_bytes);

  Core &core_;
  Links links_{core_, *this};
  AllCallCounters counters_;
  wire::SessionId session_;
  std::uint64_t turns_ = 0;
  std::vector<Hold> holds_;
  std::multimap<nessie::Clock::time_point, std::uint64_t> expiries_;  ///< ids of calls with an `on_over`
  std::vector<char> greeted_;                                         ///< by PeerId: 1 or 0
  std::vector<std::unique_ptr<CallState>> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace nssi
