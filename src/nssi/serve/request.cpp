// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/serve/request.hpp>

#include <base/thrown.hpp>

#include <fmt/format.h>

#include <nssi/drive/core.hpp>
#include <nssi/drive/event.hpp>
#include <nssi/wire/coarse_clock.hpp>

namespace nssi {

namespace {

constexpr std::size_t kKeptArgsBytes = 4096;
/// Larger results may not fit a message.
constexpr std::size_t kFittingResultBytes = wire::kAlwaysFits - wire::kMaxResultOverhead;
/// By a pool's thread, which has to tell the driver before and after.
constexpr std::size_t kWorthCopying = 256 << 10;

/// A Move has one kind of memory for both directions.
std::span<std::byte> only_read(std::span<const std::byte> source) {
  return {const_cast<std::byte *>(source.data()), source.size()};
}

/// While a traced request's handler runs, what its fiber or thread does belongs to it.
class TraceScope {
 public:
  TraceScope(Core &core, TracedWork &work) : core_(core), work_(work) {
    work_.began = Clock::now();
    before_ = std::exchange(core_.trace_context(), work_.here);
  }
  ~TraceScope() {
    core_.trace_context() = before_;
    work_.ended = Clock::now();
  }
  TraceScope(const TraceScope &) = delete;

 private:
  Core &core_;
  TracedWork &work_;
  TraceContext before_;
};

}  // namespace

void IncomingRequest::accept(PeerId caller, Role role, Session &session, const Offered &offered,
                             Clock::time_point now) {
  const auto &request = wire_;
  caller_.store(caller, std::memory_order_relaxed);
  role_ = role;
  session_ = &session;
  offered_ = &offered;
  deadline_ = request.timeout_ms == wire::kNoTimeout
                  ? Deadline::never()
                  : Deadline::at(now + std::chrono::milliseconds(request.timeout_ms));
  transfer_limit_ = Deadline::never();
  begun_ = replied_ = acknowledged_ = false;
  awaited_until_.store(kIsHere, std::memory_order_relaxed);
  cancelled_.store(false, std::memory_order_relaxed);
  data_bytes_ = 0;
  segments_are_missing_ = false;
  if (request.carries != 0) accept_data();
  if (offered.counters) meter_.arrive(offered.counters->sampler, request.args_bytes());
  if (request.trace)
    trace_.here = {request.trace->id, request.trace->span, 0};
  else if (auto *tracer = core_.tracer(); tracer != nullptr)
    trace_.here = tracer->sample();
  if (trace_) [[unlikely]]
    begin_trace();
}

void IncomingRequest::accept_data() {
  segments_are_missing_ = wire_.data_is_list.has_value();
  if (wire_.segments) {
    (void)segments_.read(*wire_.segments);  // decode_request() has found it sound
    data_bytes_ = segments_.size_bytes();
  } else if (wire_.data && !segments_are_missing_) {
    data_bytes_ = wire_.data->remote.size_bytes;
  }
  look_at_data();
}

/// A process that writes no trace passes on the trace that it was told of.
[[gnu::noinline]] void IncomingRequest::begin_trace() {
  auto *tracer = core_.tracer();
  if (!offered_->counters) meter_ = {};  // its error is shown
  core_.count_traced_requests(1);
  if (tracer == nullptr) return;
  trace_.parent = trace_.here;
  trace_.here.span = tracer->new_id();
  trace_.here.row = tracer->row(Tracer::RowKind::kRequests, number_);
  trace_.arrived = Clock::now();
}

[[gnu::noinline]] void IncomingRequest::end_trace() {
  const auto trace = std::exchange(trace_, {});
  core_.count_traced_requests(-1);
  auto *tracer = core_.tracer();
  if (tracer == nullptr || trace.began == Clock::time_point()) return;
  const auto row = trace.here.row;
  const auto &name = offered_->operation.name;
  tracer->write(row, trace.here, {"queueing", name, trace.arrived, trace.began, trace.parent});
  if (trace.parent.span != 0) tracer->end_arrow("request", trace.parent.span, row, trace.arrived);
  const auto error = meter_.error == Code::kOk ? "" : nessie_code_name(static_cast<int>(meter_.error));
  tracer->write(row, trace.here,
                {.category = "execution",
                 .name = name,
                 .from = trace.began,
                 .to = trace.ended,
                 .parent = trace.parent,
                 .error = error});
}

void IncomingRequest::look_at_data() {
  const auto look = [&](const nnti::RemoteBuffer &buffer, std::uint64_t offset, auto, std::uint64_t size_bytes) {
    if (auto view = core_.endpoint().view(caller(), buffer, offset, size_bytes); view.ok()) view_ = std::move(*view);
  };
  if (wire_.data && !wire_.data_is_list) look(wire_.data->remote, 0, 0, data_bytes());
  if (segments_.count() == 1) segments_.for_each_piece(0, data_bytes(), look);
}

void IncomingRequest::keep_args() {
  kept_args_.assign(wire_.args.begin(), wire_.args.end());
  wire_.args = kept_args_;
}

void IncomingRequest::forget() {
  charge_.release();
  view_.reset();
  args_view_.reset();
  long_args_.reset();
  if (!segments_.empty()) segments_.clear();
  if (kept_args_.capacity() > kKeptArgsBytes) kept_args_ = Bytes();
}

bool IncomingRequest::cancel() {
  cancelled_ = true;
  wake_watchers();
  return transfers_.empty();
}

Result<int> IncomingRequest::take_descriptor(std::uint64_t key) {
  return core_.endpoint().take_descriptor(caller(), key);
}

Status IncomingRequest::give_descriptor(std::uint64_t key, int descriptor) {
  return core_.endpoint().give_descriptor(caller(), key, descriptor);
}

void IncomingRequest::lose_caller() {
  awaited_until_ = Clock::now() + core_.reconnect();
  wake_watchers();
}

void IncomingRequest::find_caller(PeerId caller, const wire::Request &request) {
  awaited_until_ = kIsHere;
  caller_.store(caller, std::memory_order_relaxed);
  if (request.data && wire_.data) {
    wire_.data = request.data;
    segments_are_missing_ = wire_.data_is_list.has_value();
  }
  if (request.long_args && wire_.long_args) wire_.long_args = request.long_args;
  if (request.segments && wire_.segments) find_segments(*request.segments);
  if (!begun_ && !view_) look_at_data();
  core_.set_done(returned_, waiter_);
}

/// Takes over the list that says where the data are after the caller has connected again.
void IncomingRequest::find_segments(std::span<const std::byte> list) {
  SegmentMap found;
  if (found.read(list).ok() && found.size_bytes() == data_bytes()) segments_ = std::move(found);
}

/// A request that is given up before it was begun was never here: sent again, it is carried out.
bool IncomingRequest::give_up() {
  if (!cancelled_ && (!is_lost() || view_)) return false;
  if (auto *slot = session_->find(id()); slot != nullptr) {
    slot->id = 0;
    slot->request = nullptr;
  }
  return true;
}

bool IncomingRequest::prepare() {
  if (give_up()) return false;
  begun_ = true;
  if (!runs_in_place() && is_too_late()) return false;
  if (has_to_fetch())
    if (auto status = fetch_rest(); !status.ok()) {
      (void)reply_error(status.error());
      return false;
    }
  return true;
}

bool IncomingRequest::is_too_late() {
  if (!has_passed(deadline_)) return false;
  (void)reply_error({Code::kTimedOut, fmt::format("{} was not started before the call's deadline", name())});
  return true;
}

void IncomingRequest::serve() {
  if (cancelled_ || (wire_.is_one_way && !acknowledge())) return;
  meter_.has_begun = true;
  if (meter_.weight != 0) meter_.began = runs_in_place() ? meter_.arrived : Ticks::now();
  if (trace_)
    run_traced();
  else
    run_handler();
  if (!replied_)
    (void)reply_error(
        {Code::kNoResult, fmt::format("the handler of {} ended without a result", name()), nessie::Scope::kService});
  if (cancelled_) finish_transfers();
  if (meter_.weight != 0) meter_.ended = Ticks::now();
}

[[gnu::noinline]] void IncomingRequest::run_traced() {
  const TraceScope traced(core_, trace_);
  run_handler();
}

/// Of a one-way call, whose handler begins now. False: the caller gave it up before.
bool IncomingRequest::acknowledge() {
  core_.run_as_driver([&] {
    if (cancelled_) return;
    (void)answers_.answer(*session_, id(), Payload{}, *offered_);
    acknowledged_ = true;
  });
  return acknowledged_;
}

std::string IncomingRequest::name() const { return fmt::format("operation {} ({})", op(), offered_->operation.name); }

void IncomingRequest::run_handler() {
  if (const auto thrown = nessie::thrown_by([&] { offered_->operation.handler(*this); }))
    (void)reply_error(
        {Code::kInternal, fmt::format("the handler of {} failed: {}", name(), *thrown), nessie::Scope::kService});
}

/// What did not fit the message.
Status IncomingRequest::fetch_rest() {
  if (wire_.data_is_list)
    if (auto status = fetch_segments(); !status.ok()) return status;
  return wire_.long_args ? fetch_args() : Status();
}

/// Those of a one-way call are copied: it is over, and its caller's memory used again, before the handler reads them.
Status IncomingRequest::fetch_args() {
  const auto size_bytes = wire_.long_args->remote.size_bytes;
  if (offered_->operation.reads_args_once && !wire_.is_one_way) {
    auto view = core_.endpoint().view(caller(), wire_.long_args->remote, 0, size_bytes);
    if (view.ok()) {
      args_view_ = *std::move(view);
      wire_.args = args_view_->bytes();
      return {};
    }
  }
  auto block = core_.blocks().take({}, size_bytes);
  if (!block.ok()) return block.error();
  long_args_ = *std::move(block);
  wire_.args = long_args_->bytes();
  return move_data({Move::What::kArgs, long_args_->bytes()});
}

/// Its memory is not a block: a pool's handler may be the one that asks, when the caller is back.
Status IncomingRequest::fetch_segments() {
  std::uint64_t list_bytes = 0;
  core_.run_as_driver([&] {
    list_bytes = wire_.data->remote.size_bytes;
    segments_are_missing_ = false;
  });
  if (list_bytes > wire::kMostListBytes)
    return Error{Code::kBadMessage, "a list of segments is longer than any may be"};
  Bytes list(list_bytes);
  if (auto status = move_data({Move::What::kSegments, list}); !status.ok()) return status;
  Status status;
  core_.run_as_driver([&] { status = take_segments(list); });
  return status;
}

Status IncomingRequest::take_segments(std::span<const std::byte> list) {
  SegmentMap found;
  if (auto status = found.read(list); !status.ok()) return status;
  if (!segments_.empty() && found.size_bytes() != data_bytes_)
    return Error{Code::kBadMessage, "the caller's data have another size than before the connection was lost"};
  data_bytes_ = found.size_bytes();
  segments_ = std::move(found);
  return {};
}

// --- whether somebody waits -------------------------------------------------------------------------------------------

Status IncomingRequest::check() const {
  if (core_.closing()) return being_destroyed();
  if (acknowledged_) return {};
  if (cancelled_) return Error{Code::kCancelled, "the caller has cancelled the request"};
  if (const auto until = awaited_until(); until != kIsHere && Clock::now() >= until)
    return Error{Code::kPeerLost, "the caller has gone, and has not come back", nessie::Scope::kPeer};
  if (has_passed(deadline_)) return Error{Code::kTimedOut, "the caller has stopped waiting"};
  return {};
}

Deadline IncomingRequest::next_check() const {
  if (acknowledged_) return Deadline::never();
  const auto until = awaited_until();
  return until != kIsHere ? deadline_.earlier(Deadline::at(until)) : deadline_;
}

void IncomingRequest::wake_watchers() {
  for (auto *strand : watchers_) core_.wake(strand);
}

Status IncomingRequest::wait(Event &event, Deadline deadline) {
  const auto state = event.state_;  // the event may be gone as soon as it is set
  return wait(*state, deadline);
}

Status IncomingRequest::wait(EventState &event, Deadline deadline) {
  if (!core_.in_fiber()) return not_in_a_fiber();
  auto *self = core_.current_strand();
  core_.run_as_driver([&] { watchers_.push_back(self); });
  auto status = event.wait(deadline, *this);
  core_.run_as_driver([&] { watchers_.erase(std::ranges::find(watchers_, self)); });
  return status;
}

Status IncomingRequest::sleep_until(Deadline until) {
  EventState nothing{core_, {}, {}};
  auto status = wait(nothing, until);
  return status.code() == Code::kTimedOut ? check() : status;
}

// --- transfers --------------------------------------------------------------------------------------------------------

void IncomingRequest::begin_pieces(const Move &move, TransferState &transfer) {
  const auto begin = [&](const nnti::RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> memory) {
    transfer.add_piece();
    if (move.what == Move::What::kPut)
      core_.endpoint().put(caller(), remote, offset, memory, transfer);
    else
      core_.endpoint().get(caller(), remote, offset, memory, transfer);
  };
  if (move.what == Move::What::kArgs) return begin(wire_.long_args->remote, 0, move.memory);
  if (move.what == Move::What::kSegments) return begin(wire_.data->remote, 0, move.memory);
  if (move.memory.empty()) return;
  if (!wire_.data_is_list && wire_.data) return begin(wire_.data->remote, move.offset, move.memory);
  segments_.for_each_piece(
      move.offset, move.memory.size(),
      [&](const nnti::RemoteBuffer &remote, std::uint64_t offset, std::uint64_t at, std::uint64_t size_bytes) {
        begin(remote, offset, move.memory.subspan(at, size_bytes));
      });
}

TransferStart IncomingRequest::begin_transfer(TransferState &transfer) {
  transfers_.push_back(&transfer);
  return {meter_.weight != 0 ? Ticks::now() : 0, trace_ ? Clock::now() : Clock::time_point()};
}

/// A caller that has cancelled is answered when no transfer is under way any more.
void IncomingRequest::end_transfer(TransferState &transfer, const Move &move, const TransferStart &start,
                                   Code outcome) {
  std::erase(transfers_, &transfer);
  note_transfer(move, start, outcome);
  const bool is_connected = outcome != Code::kPeerLost && outcome != Code::kCancelled;
  if (cancelled_ && transfers_.empty() && is_connected)
    (void)core_.send_message(caller(), wire::Prefix{wire::Kind::kCancelled, id()});
}

void IncomingRequest::note_transfer(const Move &move, const TransferStart &start, Code outcome) {
  if (outcome == Code::kOk && move.what == Move::What::kGet) meter_.pulled_bytes += move.memory.size();
  if (outcome == Code::kOk && move.what == Move::What::kPut) meter_.pushed_bytes += move.memory.size();
  if (meter_.weight != 0) {
    const auto ticks = Ticks::since(start.ticks);
    offered_->counters->transfer.record(ticks, meter_.weight);
    session_->counters.times().transfer.record(ticks, meter_.weight);
  }
  if (trace_ && core_.tracer() != nullptr)
    core_.tracer()->write(trace_.here.row, trace_.here,
                          {.category = "transfer",
                           .name = move.name(),
                           .from = start.time,
                           .to = Clock::now(),
                           .parent = trace_.here,
                           .bytes = static_cast<std::int64_t>(move.memory.size())});
}

bool IncomingRequest::is_interrupted(Code outcome, PeerId caller) {
  bool is_interrupted = false;
  core_.run_as_driver([&] {
    returned_.store(caller != this->caller());
    const bool is_broken_off = outcome == Code::kPeerLost || outcome == Code::kCancelled;
    is_interrupted = is_broken_off && !cancelled_ && (is_lost() || returned_.load());
  });
  return is_interrupted;
}

bool IncomingRequest::caller_returns(PeerId caller, Deadline deadline) {
  if (!core_.in_fiber() || core_.reconnect().count() == 0) return false;
  core_.wait_until(returned_, waiter_, deadline);
  return returned_.load() && this->caller() != caller;
}

Deadline IncomingRequest::patience() const { return deadline_.earlier(Deadline::in(core_.reconnect())); }

Status IncomingRequest::may_move(const Move &move) const {
  if (!move.is_data()) return {};
  const std::uint64_t size_bytes = move.memory.size();
  if (cancelled_) return Error{Code::kCancelled, "the caller has cancelled the request"};
  if (is_lost() && core_.reconnect().count() == 0)
    return Error{Code::kPeerLost, "the connection to the caller is gone", nessie::Scope::kPeer};
  if (!has_data() && size_bytes != 0) return Error{Code::kInvalidArgument, "the request came without a data buffer"};
  if (replied_)
    return Error{Code::kInvalidArgument, "the request has been answered: its data buffer is the caller's again"};
  if (move.offset > data_bytes() || size_bytes > data_bytes() - move.offset)
    return Error{Code::kOutOfRange, fmt::format("{} bytes at {} are not within the caller's buffer of {}", size_bytes,
                                                move.offset, data_bytes())};
  if (has_passed(deadline_)) return Error{Code::kTimedOut, "the caller has stopped waiting"};
  if (segments_.empty() || size_bytes == 0) return {};
  return segments_.check_rights(move.offset, size_bytes, move.needed_rights());
}

std::span<const std::byte> IncomingRequest::in_place(const Move &move) const {
  const auto size_bytes = move.memory.size();
  if (move.what != Move::What::kGet || size_bytes < kWorthCopying || !view_ || Worker::current() == nullptr) return {};
  const auto bytes = view_->bytes();
  if (move.offset > bytes.size() || size_bytes > bytes.size() - move.offset) return {};
  return bytes.subspan(move.offset, size_bytes);
}

Status IncomingRequest::move_data(const Move &move) {
  TransferState transfer(core_, *this, move);
  transfer.start();
  return transfer.wait(Deadline::never());
}

Status IncomingRequest::get_data(std::span<std::byte> destination, std::uint64_t offset) {
  return move_data({Move::What::kGet, destination, offset});
}

Status IncomingRequest::put_data(std::span<const std::byte> source, std::uint64_t offset) {
  return move_data({Move::What::kPut, only_read(source), offset});
}

Transfer IncomingRequest::start_get(std::span<std::byte> destination, std::uint64_t offset) {
  return begin({Move::What::kGet, destination, offset});
}

Transfer IncomingRequest::start_put(std::span<const std::byte> source, std::uint64_t offset) {
  return begin({Move::What::kPut, only_read(source), offset});
}

Transfer IncomingRequest::begin(const Move &move) {
  auto state = std::make_unique<TransferState>(core_, *this, move);
  state->start();
  return Transfer(std::move(state));
}

/// Waits for the transfers that were still under way when the handler returned.
void IncomingRequest::finish_transfers() {
  for (TransferState *one = nullptr;;) {
    core_.run_as_driver([&] { one = under_way(); });
    if (one == nullptr) return;
    (void)one->wait(Deadline::never());
  }
}

// --- answers ----------------------------------------------------------------------------------------------------------

/// Answers as the driver, unless the request has been answered, when no transfer is under way. A one-way call's caller
/// does not wait for it.
template <class Answer> Status IncomingRequest::answer(const Answer &answer) {
  const bool is_plain = core_.driver().is_mine() && transfers_.empty() && !replied_ && !acknowledged_;
  if (is_plain && !cancelled_.load(std::memory_order_relaxed)) [[likely]] {
    replied_ = true;
    return answer();
  }
  return answer_in_turn(answer);
}

template <class Answer> [[gnu::noinline]] Status IncomingRequest::answer_in_turn(const Answer &answer) {
  Status status;
  const auto try_to_answer = [&]() -> TransferState * {
    if (replied_)
      status = Error{Code::kExists, "the request has been answered"};
    else if (!cancelled_ && under_way() != nullptr)
      return under_way();
    else if (replied_ = true; cancelled_)
      meter_.error = Code::kCancelled, status = Error{Code::kCancelled, "the caller has cancelled the request"};
    else if (!acknowledged_)
      status = answer();
    return nullptr;
  };
  for (TransferState *unfinished = nullptr;;) {
    core_.run_as_driver([&] { unfinished = try_to_answer(); });
    if (unfinished == nullptr) return status;
    (void)unfinished->wait(Deadline::never());
  }
}

/// A result that does not fit a message stays here until its caller fetches it. Where too many do already, the handler
/// waits, if it can; not for a caller that does not wait itself any more.
[[gnu::noinline]] Status IncomingRequest::await_room(std::uint64_t size_bytes) {
  if (!core_.in_fiber()) return {};
  for (;;) {
    EventState room{core_, {}, {}};
    bool waits = false;
    core_.run_as_driver([&] {
      const bool is_sent = !replied_ && !acknowledged_ && !cancelled_;
      if (!is_sent || core_.fits(caller(), size_bytes + wire::kMaxResultOverhead)) return;
      waits = answers_.await_room(*session_, *offered_, size_bytes, room);
    });
    if (!waits) return {};
    auto status = wait(room, Deadline::never());
    core_.run_as_driver([&] { answers_.await_no_more(room); });
    if (status.ok()) continue;  // another one may have taken it meanwhile
    (void)reply_error(status.error());
    return status;
  }
}

Status IncomingRequest::reply(std::span<const std::byte> result) {
  if (result.size() > kFittingResultBytes) [[unlikely]]
    if (auto status = await_room(result.size()); !status.ok()) return status;
  meter_.result_bytes = result.size();
  const Payload payload(result);
  return answer([&] { return answers_.answer(*session_, id(), payload, *offered_); });
}

Status IncomingRequest::reply(std::size_t size_bytes, const Encoder &encode) {
  if (size_bytes > kFittingResultBytes) [[unlikely]]
    if (auto status = await_room(size_bytes); !status.ok()) return status;
  meter_.result_bytes = size_bytes;
  const Payload payload(size_bytes, encode);
  return answer([&] {
    auto status = answers_.answer(*session_, id(), payload, *offered_);
    if (status.code() == Code::kInternal) meter_.error = Code::kInternal;
    return status;
  });
}

Status IncomingRequest::reply_error(const Error &error) {
  const auto code = static_cast<int>(error.code), scope = static_cast<int>(error.scope);
  if (!wire::is_error(code, scope))
    return reply_error({Code::kInternal,
                        fmt::format("the handler of {} gave code {}, scope {} as an error, which is none: {}", name(),
                                    code, scope, error.message),
                        nessie::Scope::kService});
  return answer([&] {
    meter_.error = error.code;
    return answers_.answer(*session_, id(), error);
  });
}

}  // namespace nssi
