// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <nssi/call/client.hpp>
#include <nssi/drive/core.hpp>
#include <nssi/wire/coarse_clock.hpp>

#include <algorithm>
#include <limits>

namespace nssi {

namespace {

constexpr std::size_t kKeptResultBytes = 64 << 10;

/// How long a call past its deadline waits for the server's word that it no longer reaches for the data buffer.
constexpr std::chrono::milliseconds kCancelPatience{200};

/// Milliseconds for the wire, rounded up; 0: none are left.
std::uint32_t milliseconds_left(Deadline deadline) {
  if (deadline.is_never()) return wire::kNoTimeout;
  if (deadline.passed()) return 0;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.when() - Clock::now()).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 0, wire::kNoTimeout - 1));
}

void begin_request(const CallState &call, wire::RequestHead &request) {
  request.prefix.id = call.id;
  request.interface = call.service.interface;
  request.provider = call.service.provider;
  request.op = call.op;
  request.timeout_ms = call.timeout_ms;
}

std::uint32_t slot_of(std::uint64_t id) { return static_cast<std::uint32_t>(id); }

Error timed_out(const CallState &call) {
  return {Code::kTimedOut,
          fmt::format("no result of operation {} within the call's deadline; the service may have acted", call.op)};
}

}  // namespace

Client::Client(Core &core) : core_(core) { nessie::random_bytes(session_); }

void CallState::on_complete(Status outcome) { client->on_fetched(*this, std::move(outcome)); }

CallState *Client::start(const Service &service, OpCode op, const Payload &args, const CallOptions &options) {
  const Turn turn(core_.driver());
  auto &call = turn ? claim(nullptr) : *make_state().release();
  call.is_held = true;
  call.service = service;
  call.data = options.data;
  if (!options.parts.empty()) call.parts = PartList::of(options);
  call.is_idempotent = options.idempotent;
  call.fails_when_busy = options.when_busy == CallOptions::WhenBusy::kFail;
  call.is_one_way = options.one_way;
  if (options.on_over) call.on_over = options.on_over;
  call.op = op;
  call.trace.parent = core_.has_traced_requests() ? core_.trace_context() : TraceContext();
  call.deadline = options.deadline ? *options.deadline : Deadline::at(coarse_now() + core_.timeout());
  call.timeout_ms =
      options.deadline ? milliseconds_left(*options.deadline) : static_cast<std::uint32_t>(core_.timeout().count());
  if (turn) {
    send(call, args);
    return &call;
  }
  call.args.resize(args.size_bytes());
  core_.driver().hand_over([this, &call, encoded = args.write(call.args, "arguments")] {
    claim(std::unique_ptr<CallState>(&call));
    const Bytes copy = std::move(call.args);
    if (call.done.load()) return;
    if (!encoded.ok()) return finish(call, encoded);
    send(call, Payload(copy));
  });
  core_.wake();
  return &call;
}

std::unique_ptr<CallState> Client::make_state() {
  auto state = std::make_unique<CallState>();
  state->client = this;
  return state;
}

CallState &Client::claim(std::unique_ptr<CallState> state) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.push_back(nullptr);
  }
  const auto slot = free_.back();
  free_.pop_back();
  auto &place = slots_[slot];
  const auto uses = place ? place->id >> 32 : 1;
  if (state)
    place = std::move(state);
  else if (!place)
    place = make_state();
  place->id = uses << 32 | slot;
  return *place;
}

/// Where memory is shared, the service decodes long arguments where they lie: in the message they would be copied four
/// times more, into the message, into the channel, out of it, and for a repeat. Those of a one-way call it copies.
inline bool Client::goes_along(const CallState &call, std::size_t args_bytes) const {
  if (args_bytes <= wire::kShortArgs) return true;
  if (args_bytes > core_.max_inline_args(call.connection)) return false;
  return call.is_one_way || !core_.endpoint().can_view(call.connection);
}

/// Keeps the arguments, which may have to be sent once more.
Status Client::keep(CallState &call, const Payload &args) {
  if (call.args.size() != args.size_bytes()) call.args.resize(args.size_bytes());
  return args.write(call.args, "arguments");
}

/// Long arguments go straight into a block, or into the message if there is no memory for one and they fit.
inline Status Client::take_arguments(CallState &call, const Payload &args) {
  if (goes_along(call, args.size_bytes())) return keep(call, args);
  auto status = lend(call, args);
  const bool may_go_along =
      status.code() == Code::kNoMemory && args.size_bytes() <= core_.max_inline_args(call.connection);
  return may_go_along ? keep(call, args) : status;
}

/// A call that belongs to no trace may begin one.
void Client::send(CallState &call, const Payload &args) {
  call.turn = ++turns_;
  auto *link = links_.named(call.service.peer);
  call.connection = link != nullptr ? link->connection : call.service.peer;
  if (auto *tracer = core_.tracer(); tracer != nullptr && call.trace.parent.trace == 0)
    call.trace.parent = tracer->sample();
  if (call.trace.parent.trace != 0) [[unlikely]]
    begin_trace(call);
  if (core_.counts()) measure(call, link, args.size_bytes());
  if (call.is_one_way && (call.data != nullptr || call.parts))
    return finish(call,
                  Error{Code::kInvalidArgument,
                        "a one-way call cannot have a data buffer: nobody learns when the service is done with it"});
  if (auto status = take_arguments(call, args); !status.ok()) return finish(call, std::move(status));
  if (call.parts)
    if (auto status = place_segments(call); !status.ok()) return finish(call, std::move(status));
  call.phase = CallState::Phase::kWaiting;
  if (call.on_over) expire_at(call, call.deadline);
  if (!holds_.empty() && !call.fails_when_busy && hold_of(call.service) != nullptr) return hold(call);
  if (link == nullptr || link->is_ready) transmit(call);
}

/// A process that writes no trace passes on the trace that it was told of.
[[gnu::noinline]] void Client::begin_trace(CallState &call) {
  auto &trace = call.trace;
  auto *tracer = core_.tracer();
  trace.here = trace.parent;
  if (tracer == nullptr) return;
  trace.here.span = tracer->new_id();
  trace.here.row = tracer->row(Tracer::RowKind::kCalls, slot_of(call.id));
  trace.began = Clock::now();
}

[[gnu::noinline]] void Client::end_trace(CallState &call) {
  const auto trace = std::exchange(call.trace, {});
  auto *tracer = core_.tracer();
  if (tracer == nullptr) return;
  const auto row = trace.here.row;
  const auto code = call.status.code();
  tracer->write(row, trace.here,
                {.category = "call",
                 .name = fmt::format("call of operation {} of {:#x}", call.op, call.service.interface.program),
                 .from = trace.began,
                 .to = Clock::now(),
                 .parent = trace.parent,
                 .error = code == Code::kOk ? "" : nessie_code_name(static_cast<int>(code))});
  tracer->begin_arrow("request", trace.here.span, row, trace.began);
  if (trace.parent.row == 0) return;
  tracer->begin_arrow("call", trace.here.span, trace.parent.row, trace.began);
  tracer->end_arrow("call", trace.here.span, row, trace.began);
}

void Client::measure(CallState &call, const Link *link, std::uint64_t args_bytes) {
  auto &meter = call.meter;
  if (meter.counters == nullptr || !meter.counters->are(call.service, call.op))
    meter.counters = &counters_.of(call.service, call.op, link != nullptr ? link->url : std::string_view());
  meter.send(args_bytes);
}

Status Client::lend(CallState &call, const Payload &args) {
  auto block = core_.blocks().take(call.service.peer, args.size_bytes());
  if (!block.ok()) return block.error();
  const nessie::ReadElsewhere scope(core_.endpoint().can_view(call.connection));
  if (auto status = args.write(block->bytes(), "arguments"); !status.ok()) return status;
  call.long_args = *std::move(block);
  return {};
}

/// A list of parts that does not fit the message gets a block, too.
Status Client::place_segments(CallState &call) {
  if (!call.parts->fault().ok()) return call.parts->fault();
  const auto list_bytes = call.parts->list_bytes();
  const auto message_bytes = (call.long_args ? 0 : call.args.size()) + wire::kMaxRequestOverhead + list_bytes;
  if (list_bytes <= wire::kMostInlineListBytes && core_.fits(call.connection, message_bytes)) return {};
  auto block = core_.blocks().take(call.service.peer, list_bytes);
  if (!block.ok()) return block.error();
  call.long_segments = *std::move(block);
  return {};
}

/// Puts into the request what it carries beside its arguments; `list` is to live until it is sent.
Status Client::describe(CallState &call, wire::Request &request, Bytes &list) {
  if (call.parts) {
    if (auto status = describe_parts(call, request, list); !status.ok()) return status;
  } else if (call.data != nullptr) {
    auto remote = call.data->describe_for(call.connection);
    if (!remote.ok()) return remote.error();
    request.data = wire::Buffer{*remote};
  }
  if (call.long_args) {
    auto remote = call.long_args->describe_for(call.connection);
    if (!remote.ok()) return remote.error();
    request.long_args = wire::Buffer{*remote};
  } else {
    request.args = call.args;
  }
  if (call.fails_when_busy) request.does_not_wait.emplace();
  if (call.is_one_way) request.is_one_way.emplace();
  if (call.trace) request.trace = call.trace.for_wire();
  call.lends = request.data || request.long_args || request.segments;
  return {};
}

/// Writes into the request where the parts of its data are.
Status Client::describe_parts(CallState &call, wire::Request &request, Bytes &list) {
  if (call.long_segments) {
    if (auto status = call.parts->describe_for(call.connection, request, call.long_segments->bytes()); !status.ok())
      return status;
    auto remote = call.long_segments->describe_for(call.connection);
    if (!remote.ok()) return remote.error();
    request.data = wire::Buffer{*remote};
    request.data_is_list.emplace();
  } else {
    list.resize(call.parts->list_bytes());
    if (auto status = call.parts->describe_for(call.connection, request, list); !status.ok()) return status;
    if (!list.empty()) request.segments = list;
  }
  return {};
}

[[gnu::always_inline]] inline Status Client::send_plain_request(CallState &call) {
  wire::PlainRequest request;
  begin_request(call, request);
  request.args = call.args;
  call.lends = false;
  return core_.send_message(call.connection, request);
}

void Client::transmit(CallState &call) {
  if (call.timeout_ms == 0)
    return finish(call, call.was_sent ? timed_out(call)
                                      : Error{Code::kTimedOut, "the call's deadline had passed before it was sent"});
  call.is_answered = false;  // an answer that came over a lost connection may be another process's
  auto status = has_greeted(call.connection) ? Status() : greet(call.connection);
  call.phase = CallState::Phase::kSent;
  if (status.ok()) status = call.carries_more() ? send_request(call) : send_plain_request(call);
  if (!status.ok()) finish(call, std::move(status));
}

Status Client::send_request(CallState &call) {
  wire::Request request;
  begin_request(call, request);
  Bytes list;
  if (auto status = describe(call, request, list); !status.ok()) return status;
  return core_.send_message(call.connection, request);
}

/// A service knows callers by their session, not by their connections.
Status Client::greet(PeerId peer) {
  auto status = core_.send_message(peer, wire::Hello{{wire::Kind::kHello, 0}, session_});
  if (!status.ok()) return status;
  if (peer.value >= greeted_.size()) greeted_.resize(peer.value + 1);
  greeted_[peer.value] = 1;
  return {};
}

CallState *Client::find(PeerId from, std::uint64_t id) {
  const auto slot = slot_of(id);
  if (slot >= slots_.size() || !slots_[slot]) return nullptr;
  auto *call = slots_[slot].get();
  const bool current = call->id == id && call->connection == from && !call->done.load(std::memory_order_relaxed);
  return current && call->phase != CallState::Phase::kFetching ? call : nullptr;
}

void Client::on_result(PeerId from, std::uint64_t id, std::span<const std::byte> message) {
  auto *call = find(from, id);
  if (wire::PlainResult plain; call != nullptr && plain.read(message)) [[likely]] {
    call->is_answered = true;
    call->result.assign(plain.result.begin(), plain.result.end());
    return finish(*call, {});
  }
  wire::Result result;
  auto status = wire::decode_result(message, result);
  if (call == nullptr) {  // cancelled meanwhile
    if (status.ok() && result.long_result) (void)core_.send_message(from, wire::Prefix{wire::Kind::kResultFetched, id});
    return;
  }
  call->is_answered = true;
  if (!status.ok()) return finish(*call, std::move(status));
  if (result.failure) return finish(*call, wire::to_error(*result.failure));
  fetch(*call, result.long_result->remote);
}

void Client::fetch(CallState &call, const nnti::RemoteBuffer &remote) {
  auto block = remote.size_bytes <= core_.max_long_bytes()
                   ? core_.blocks().take({}, remote.size_bytes)
                   : nessie::Result<Block>(Error{Code::kNoMemory, "it is larger than nssi.max_long"});
  if (!block.ok()) {
    (void)core_.send_message(call.connection, wire::Prefix{wire::Kind::kResultFetched, call.id});
    return finish(call,
                  Error{Code::kNoMemory, fmt::format("no memory for a result of {} bytes: {}; raise nssi.max_long "
                                                     "if it is meant to be so large",
                                                     remote.size_bytes, block.error().message)});
  }
  call.long_result = *std::move(block);
  call.phase = CallState::Phase::kFetching;
  call.fetching = true;
  core_.endpoint().get(call.connection, remote, 0, call.long_result->bytes(), call);
}

void Client::on_fetched(CallState &call, Status status) {
  call.fetching = false;
  const bool may_be_offered_again = links_.named(call.service.peer) != nullptr && !call.done.load();
  const bool is_broken_off = status.code() == Code::kPeerLost || status.code() == Code::kCancelled;
  if (is_broken_off && may_be_offered_again) {  // on_peer_lost() follows
    call.phase = CallState::Phase::kSent;
    return;
  }
  (void)core_.send_message(call.connection, wire::Prefix{wire::Kind::kResultFetched, call.id});
  if (!call.done.load())  // past the deadline the service has freed it
    finish(call, status.code() == Code::kRefused && call.deadline.passed() ? timed_out(call) : std::move(status));
  else if (!call.is_held)
    recycle(call);
}

void Client::on_cancelled(PeerId from, std::uint64_t id) {
  auto *call = find(from, id);
  if (call == nullptr || call->phase != CallState::Phase::kCancelling) return;
  call->is_answered = true;
  finish(*call, std::move(call->status));
}

// --- services that are busy -------------------------------------------------------------------------------------------

void Client::on_busy(PeerId from, std::uint64_t id, std::span<const std::byte> message) {
  auto *call = find(from, id);
  const auto busy = xdr::decode<wire::Busy>(message);
  if (!busy.ok() || call == nullptr || call->phase != CallState::Phase::kSent) return;
  call->lends = false;
  if (!call->fails_when_busy) {
    call->was_turned_away = true;
    return hold(*call);
  }
  call->is_answered = true;
  Error error{Code::kBusy,
              fmt::format("the service has no room for operation {} now; try again in {} ms, or let the call wait",
                          call->op, busy->retry_after_ms)};
  error.retry_after = std::chrono::milliseconds(busy->retry_after_ms);
  finish(*call, std::move(error));
}

Client::Hold *Client::hold_of(const Service &service) {
  const auto found = std::ranges::find(holds_, service, &Hold::service);
  return found == holds_.end() ? nullptr : &*found;
}

void Client::hold(CallState &call) {
  auto *hold = hold_of(call.service);
  if (hold == nullptr) hold = &holds_.emplace_back(Hold{call.service, {}});
  call.phase = CallState::Phase::kHeld;
  if (call.meter.counters != nullptr) ++call.meter.counters->held_back;
  hold->calls.insert(std::ranges::upper_bound(hold->calls, call.turn, {}, &CallState::turn), &call);
}

void Client::on_invited(PeerId from, std::span<const std::byte> message) {
  const auto invited = xdr::decode<wire::Invited>(message);
  const auto *link = links_.over(from);
  if (!invited.ok()) return;
  auto *hold = hold_of({link != nullptr ? link->name : from, invited->interface, invited->provider});
  if (hold == nullptr) return;  // the call was cancelled, which the service is about to hear
  auto &call = *hold->calls.front();
  const auto service = hold->service;
  hold->calls.pop_front();
  send_again(call);
  send_held_behind(service);
}

/// Behind the last call that the service has turned away, they need not wait.
void Client::send_held_behind(const Service &service) {
  auto *hold = hold_of(service);
  if (hold == nullptr || (!hold->calls.empty() && hold->calls.front()->was_turned_away)) return;
  const auto calls = std::move(hold->calls);
  holds_.erase(holds_.begin() + (hold - holds_.data()));
  std::vector<Named> named;
  for (auto *call : calls) named.push_back({call->id, call});
  for (const auto &[id, call] : named)
    if (call->id == id && call->phase == CallState::Phase::kHeld) send_again(*call);
}

/// A held call is over.
void Client::take_out(CallState &call) {
  if (auto *hold = hold_of(call.service); hold != nullptr) std::erase(hold->calls, &call);
  send_held_behind(call.service);
}

/// A service that expects it hears if it does not come.
void Client::send_again(CallState &call) {
  const bool is_expected = std::exchange(call.was_turned_away, false);
  const auto id = call.id;
  const auto connection = call.connection;
  call.phase = CallState::Phase::kWaiting;
  call.timeout_ms = milliseconds_left(call.deadline);
  transmit(call);
  if (is_expected && (call.id != id || call.phase == CallState::Phase::kDone))
    (void)core_.send_message(connection, wire::Prefix{wire::Kind::kCancel, id});
}

void Client::finish(CallState &call, Status status) {
  const bool was_held = std::exchange(call.phase, CallState::Phase::kDone) == CallState::Phase::kHeld;
  if (was_held) take_out(call);
  call.status = std::move(status);
  if (call.trace) end_trace(call);
  if (call.meter.counters != nullptr)
    call.meter.finish(call.status.code(), call.long_result ? call.long_result->bytes().size() : call.result.size());
  if (call.long_args || call.long_segments) take_back_lent(call);
  if (call.expiry) end_expiry(call);
  if (call.callback) call_back(call);
  std::function<void()> on_over;
  if (call.on_over) on_over.swap(call.on_over);
  if (auto *watch = std::exchange(call.watch, nullptr); watch != nullptr) core_.set_done(watch->done, watch->waiter);
  core_.set_done(call.done, call.waiter);
  if (call.is_one_way && !call.is_held) recycle(call);
  if (on_over) do_guarded(on_over);
}

void Client::take_back_lent(CallState &call) {
  for (auto *lent : {&call.long_args, &call.long_segments}) {
    if (*lent && !call.is_answered) (*lent)->taint();
    lent->reset();
  }
}

// --- calls for which nobody waits -------------------------------------------------------------------------------------

void Client::set_callback(CallState &call, std::function<void()> callback) {
  core_.run_as_driver([&] {
    call.callback = std::make_shared<std::function<void()>>(std::move(callback));
    if (call.done.load(std::memory_order_relaxed)) return call_back(call);
    expire_at(call, call.deadline);
  });
}

void Client::forget_callback(CallState &call) {
  core_.run_as_driver([&] {
    *call.callback = nullptr;
    call.callback.reset();
  });
}

/// By a fiber that finds nothing to call if the call is dropped before it begins.
void Client::call_back(CallState &call) {
  core_.spawn([callback = call.callback] {
    if (const auto over = std::exchange(*callback, nullptr)) over();
  });
}

void Client::expire_at(CallState &call, Deadline deadline) {
  end_expiry(call);
  if (!deadline.is_never()) call.expiry = expiries_.emplace(deadline.when(), call.id);
}

void Client::end_expiry(CallState &call) {
  if (call.expiry) expiries_.erase(*call.expiry);
  call.expiry.reset();
}

void Client::expire() {
  const auto now = Clock::now();
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    auto &call = *slots_[slot_of(expiries_.begin()->second)];
    end_expiry(call);
    expire(call);
  }
}

/// The second time, a service that does not say that it is done with the call's buffer is not waited for any longer,
/// nor a result that is being fetched.
void Client::expire(CallState &call) {
  const auto why = timed_out(call);
  if (std::exchange(call.is_overdue, true)) return finish(call, why);
  const auto id = call.id;
  begin_cancel(call, why);
  if (call.id == id && !call.done.load(std::memory_order_relaxed)) expire_at(call, Deadline::in(kCancelPatience));
}

void Client::cancel(CallState &call, const Error &why, Deadline patience) {
  core_.run_as_driver([&] { begin_cancel(call, why); });
  core_.wait_until(call.done, call.waiter, patience);
  if (call.done.load()) return;
  core_.run_as_driver([&] {
    if (!call.done.load()) finish(call, why);
  });
}

void Client::time_out(CallState &call) { cancel(call, timed_out(call), Deadline::in(kCancelPatience)); }

void Client::begin_cancel(CallState &call, const Error &why) {
  using Phase = CallState::Phase;
  if (call.phase == Phase::kDone || call.phase == Phase::kFetching) return;  // fetching: the result is about to be here
  if (call.was_turned_away) (void)core_.send_message(call.connection, wire::Prefix{wire::Kind::kCancel, call.id});
  const bool may_have_been_carried_out = call.was_sent && call.is_idempotent;  // by a process that is gone
  if (call.phase == Phase::kHeld && why.code == Code::kTimedOut && !may_have_been_carried_out)
    return finish(call, Error{Code::kTimedOut, fmt::format("the service had no room for operation {} within the call's "
                                                           "deadline; it was not carried out",
                                                           call.op)});
  const bool sent = call.phase == Phase::kSent &&
                    core_.send_message(call.connection, wire::Prefix{wire::Kind::kCancel, call.id}).ok();
  if (!sent || !call.lends) return finish(call, why);
  call.status = why;
  call.phase = Phase::kCancelling;
}

void Client::release(CallState &call) {
  if (Turn turn(core_.driver()); turn) return drop(call);
  core_.driver().hand_over([this, &call] { drop(call); });
}

void Client::drop(CallState &call) {
  call.is_held = false;
  const bool is_under_way = call.is_one_way && !call.done.load(std::memory_order_relaxed);
  if (is_under_way) expire_at(call, call.deadline);
  if (!is_under_way && !call.fetching) recycle(call);
}

/// Makes the state ready for the next call; what it has allocated is kept, unless it is large.
void Client::recycle(CallState &call) {
  if (call.result.capacity() > kKeptResultBytes) call.result = Bytes();
  if (call.args.capacity() > kKeptResultBytes) call.args = Bytes();
  call.result.clear();
  call.long_result.reset();
  call.parts.reset();
  call.done.store(false, std::memory_order_relaxed);
  call.phase = CallState::Phase::kNew;
  call.lends = call.was_sent = call.is_answered = call.was_turned_away = false;
  call.waiter = nullptr;
  call.watch = nullptr;
  call.on_over = nullptr;
  call.callback.reset();
  call.is_overdue = false;
  call.status = {};
  call.id += std::uint64_t{1} << 32;           // a late result finds nobody
  const bool is_used_up = call.id >> 32 == 0;  // the service takes lower ids for old ones: the slot is not used again
  if (!is_used_up) free_.push_back(slot_of(call.id));
}

template <class Use> void Client::for_each_in_progress(Use use) {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (auto *call = slots_[i].get(); call != nullptr && call->phase != CallState::Phase::kNew && !call->done.load())
      use(*call);
}

void Client::finish_all(const Error &error) {
  holds_.clear();
  for_each_in_progress([&](CallState &call) { finish(call, error); });
}

// --- connections that are lost ----------------------------------------------------------------------------------------

bool Client::on_peer_lost(PeerId peer, const Error &error, std::chrono::milliseconds patience) {
  using Phase = CallState::Phase;
  auto *link = links_.over(peer);
  const bool is_retried = link != nullptr && patience.count() > 0;
  const auto name = link != nullptr ? link->name : peer;
  // Of the link nothing is used below: what is called back may disconnect the peer.
  const auto ended = link != nullptr && !is_retried ? links_.remove(*link) : nullptr;
  if (is_retried) links_.reconnect(*link, error, patience);
  std::erase_if(holds_, [&](const Hold &hold) { return hold.service.peer == name; });
  std::vector<Named> over;
  for_each_in_progress([&](CallState &call) {
    if (call.connection != peer) return;
    if (!is_retried || call.phase == Phase::kCancelling) return over.push_back({call.id, &call});
    call.was_sent |= call.phase != Phase::kWaiting && call.phase != Phase::kHeld;
    call.was_turned_away = false;
    call.phase = Phase::kWaiting;
    call.connection = {};
  });
  for (const auto &[id, call] : over)
    if (call->id == id && !call->done.load()) finish(*call, is_retried ? std::move(call->status) : Status(error));
  return is_retried;
}

void Client::introduce(PeerId name) {
  auto &link = *links_.named(name);
  links_.hold(link, core_.timeout());
  (void)greet(link.connection);
}

void Client::on_link_connected(Link &link) { (void)greet(link.connection); }

void Client::on_welcome(PeerId from, std::span<const std::byte> message) {
  const auto welcome = xdr::decode<wire::Welcome>(message);
  auto *link = links_.over(from);
  if (!welcome.ok() || link == nullptr) return;
  const bool is_another = std::exchange(link->incarnation, welcome->incarnation) != welcome->incarnation;
  if (const auto &operators = core_.operators(); operators)
    (void)core_.send_message(
        from, wire::RoleProof{{wire::Kind::kProof, 0},
                              link->url,
                              operators->prove(wire::role_of_operator(link->url), session_, welcome->challenge)});
  if (!link->is_ready) resume(*link, is_another);
}

/// What was in progress goes on, in its order. A process that does not know what the one before has carried out cannot
/// be asked again.
void Client::resume(Link &link, bool is_another_process) {
  links_.set_ready(link);
  std::vector<std::pair<std::uint64_t, Named>> waiting;
  for_each_in_progress([&](CallState &call) {
    if (call.service.peer == link.name && call.phase == CallState::Phase::kWaiting)
      waiting.push_back({call.turn, {call.id, &call}});
  });
  std::ranges::sort(waiting, {}, [](const auto &each) { return each.first; });
  for (const auto &[turn, named] : waiting) {
    auto *call = named.call;
    if (call->id != named.id || call->phase != CallState::Phase::kWaiting) continue;
    if (is_another_process && call->was_sent && !call->is_idempotent) {
      finish(*call, Error{Code::kPeerLost,
                          fmt::format("the service was started anew; whether operation {} was carried out before that "
                                      "cannot be known",
                                      call->op),
                          nessie::Scope::kService});
      continue;
    }
    call->connection = link.connection;
    if (call->was_sent && call->meter.counters != nullptr) ++call->meter.counters->sent_again;
    send_again(*call);
  }
}

void Client::on_link_given_up(Link &link, const Error &why) {
  finish_waiting(link.name, why);
  core_.blocks().forget(link.name);
  core_.tell_peer_lost(link.name, why);
}

void Client::finish_waiting(PeerId name, const Error &why) {
  for_each_in_progress([&](CallState &call) {
    if (call.service.peer == name && call.phase == CallState::Phase::kWaiting) finish(call, why);
  });
}

void Client::drop_link(PeerId name, const Error &why) {
  auto *link = links_.named(name);
  if (link == nullptr) return;
  const auto ended = links_.remove(*link);
  finish_waiting(name, why);
  core_.blocks().forget(name);
}

void Client::detach_all() {
  for (auto &call : slots_) {
    if (!call) continue;
    if (call->long_result) call->result.assign(call->long_result->bytes().begin(), call->long_result->bytes().end());
    call->long_result.reset();
    call->client = nullptr;
    if (call->is_held) (void)call.release();
  }
}

}  // namespace nssi
