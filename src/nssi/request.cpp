// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <nssi/coarse_clock.hpp>
#include <nssi/engine.hpp>

namespace nssi {

namespace {

constexpr std::size_t kKeptArgsBytes = 4096;

}  // namespace

void IncomingRequest::accept(PeerId caller, Role role, Session &session, const wire::Request &request,
                             const Offered &offered, Charge charge, Clock::time_point now) {
  caller_ = caller;
  role_ = role;
  session_ = &session;
  wire_ = request;
  offered_ = &offered;
  charge_ = std::move(charge);
  deadline_ = request.timeout_ms == wire::kNoTimeout
                  ? Deadline::never()
                  : Deadline::at(now + std::chrono::milliseconds(request.timeout_ms));
  transfer_limit_ = Deadline::never();
  begun_ = replied_ = lost_ = transferring_ = acknowledged_ = false;
  cancelled_.store(false, std::memory_order_relaxed);
  data_bytes_ = request.data ? request.data->remote.size_bytes : 0;
  look_at_data();
}

void IncomingRequest::look_at_data() {
  if (!wire_.data) return;
  if (auto view = engine_.endpoint().view(caller(), wire_.data->remote, 0, data_bytes()); view.ok())
    view_ = std::move(*view);
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
  if (kept_args_.capacity() > kKeptArgsBytes) kept_args_ = Bytes();
}

bool IncomingRequest::cancel() {
  cancelled_ = true;
  return !transferring_;
}

void IncomingRequest::lose_caller() { lost_ = true; }

void IncomingRequest::find_caller(PeerId caller, const wire::Request &request) {
  lost_ = false;
  caller_ = caller;
  if (request.data && wire_.data) wire_.data = request.data;
  if (request.long_args && wire_.long_args) wire_.long_args = request.long_args;
  if (!begun_ && !view_) look_at_data();
  engine_.set_done(returned_, waiter_);
}

/// A request that is given up before it was begun was never here: sent again, it is carried out.
bool IncomingRequest::give_up() {
  if (!cancelled_ && (!lost_ || view_)) return false;
  if (auto *slot = session_->find(id()); slot != nullptr) {
    slot->id = 0;
    slot->request = nullptr;
  }
  return true;
}

bool IncomingRequest::prepare() {
  if (give_up()) return false;
  begun_ = true;
  if (has_passed(deadline_)) {
    (void)reply_error({Code::kTimedOut, fmt::format("{} was not started before the call's deadline", name())});
    return false;
  }
  if (has_long_args())
    if (auto status = fetch_args(); !status.ok()) {
      (void)reply_error(status.error());
      return false;
    }
  if (wire_.is_one_way) acknowledge();
  return true;
}

void IncomingRequest::serve() {
  if (cancelled_) return;
  run_handler();
  if (!replied_)
    (void)reply_error(
        {Code::kNoResult, fmt::format("the handler of {} ended without a result", name()), nessie::Scope::kService});
}

/// Of a one-way call.
void IncomingRequest::acknowledge() {
  (void)engine_.server().answer(*session_, id(), Payload{}, *offered_->admission);
  acknowledged_ = true;
}

std::string IncomingRequest::name() const { return fmt::format("operation {} ({})", op(), offered_->operation.name); }

void IncomingRequest::run_handler() {
  auto failed = [this](const char *what) {
    (void)reply_error(
        {Code::kInternal, fmt::format("the handler of {} failed: {}", name(), what), nessie::Scope::kService});
  };
  try {
    offered_->operation.handler(*this);
  } catch (const std::exception &e) { failed(e.what()); } catch (...) {
    failed("an exception of unknown type");
  }
}

Status IncomingRequest::fetch_args() {
  const auto size_bytes = wire_.long_args->remote.size_bytes;
  if (size_bytes > engine_.max_long_bytes())
    return Error{Code::kNoMemory,
                 fmt::format("arguments of {} bytes are larger than the service's nssi.max_long; raise "
                             "it if they are meant to be so large",
                             size_bytes)};
  if (offered_->operation.reads_args_once) {
    auto view = engine_.endpoint().view(caller(), wire_.long_args->remote, 0, size_bytes);
    if (view.ok()) {
      args_view_ = *std::move(view);
      wire_.args = args_view_->bytes();
      return {};
    }
  }
  auto block = engine_.blocks().take({}, size_bytes);
  if (!block.ok()) return block.error();
  long_args_ = *std::move(block);
  wire_.args = long_args_->bytes();
  return transfer([&](PeerId caller, Transfer &t) {
    engine_.endpoint().get(caller, wire_.long_args->remote, 0, long_args_->bytes(), t);
    return Status();
  });
}

/// One-sided transfers may be repeated: one that was interrupted by the loss of the connection is, when the caller is
/// back.
template <class Start> Status IncomingRequest::transfer(Start start) {
  for (;;) {
    Transfer transfer(engine_);
    PeerId caller;
    Status status;
    engine_.run_as_driver([&] {
      caller = this->caller();
      status = start(caller, transfer);
      transferring_ = status.ok();
    });
    if (!status.ok()) return status;
    status = transfer.await(caller, deadline_.earlier(transfer_limit_));
    bool is_interrupted = false;
    engine_.run_as_driver([&] { is_interrupted = end_transfer(status, caller); });
    if (!is_interrupted || !caller_returns(caller)) return status;
  }
}

/// True: it was interrupted because the connection is gone, and may be repeated.
bool IncomingRequest::end_transfer(const Status &status, PeerId caller) {
  transferring_ = false;
  if (cancelled_) (void)engine_.send_message(this->caller(), wire::Prefix{wire::Kind::kCancelled, id()});
  const bool is_interrupted = status.code() == Code::kPeerLost || (status.code() == Code::kCancelled && lost_);
  returned_.store(caller != this->caller());
  return is_interrupted && !cancelled_ && (lost_ || returned_.load());
}

/// Waits for the caller, who has lost the connection `caller`.
bool IncomingRequest::caller_returns(PeerId caller) {
  if (!engine_.in_fiber() || engine_.reconnect().count() == 0) return false;
  engine_.wait_until(returned_, waiter_, deadline_.earlier(Deadline::in(engine_.reconnect())));
  return returned_.load() && this->caller() != caller;
}

Status IncomingRequest::may_transfer(std::uint64_t offset, std::uint64_t size_bytes) const {
  if (cancelled_) return Error{Code::kCancelled, "the caller has cancelled the request"};
  if (lost_ && engine_.reconnect().count() == 0)
    return Error{Code::kPeerLost, "the connection to the caller is gone", nessie::Scope::kPeer};
  if (!wire_.data && size_bytes != 0) return Error{Code::kInvalidArgument, "the request came without a data buffer"};
  if (replied_)
    return Error{Code::kInvalidArgument, "the request has been answered: its data buffer is the caller's again"};
  if (offset > data_bytes() || size_bytes > data_bytes() - offset)
    return Error{Code::kOutOfRange, fmt::format("{} bytes at {} are not within the caller's buffer of {}", size_bytes,
                                                offset, data_bytes())};
  if (has_passed(deadline_)) return Error{Code::kTimedOut, "the caller has stopped waiting"};
  return {};
}

template <class Start>
Status IncomingRequest::transfer_data(std::uint64_t offset, std::uint64_t size_bytes, Start start) {
  return transfer([&](PeerId caller, Transfer &t) {
    auto status = may_transfer(offset, size_bytes);
    if (!status.ok()) return status;
    if (size_bytes == 0)
      t.on_complete({});
    else
      start(caller, t);
    return status;
  });
}

Status IncomingRequest::get_data(std::span<std::byte> destination, std::uint64_t offset) {
  return transfer_data(offset, destination.size(), [&](PeerId caller, Transfer &t) {
    engine_.endpoint().get(caller, wire_.data->remote, offset, destination, t);
  });
}

Status IncomingRequest::put_data(std::span<const std::byte> source, std::uint64_t offset) {
  return transfer_data(offset, source.size(), [&](PeerId caller, Transfer &t) {
    engine_.endpoint().put(caller, wire_.data->remote, offset, source, t);
  });
}

/// Answers as the driver, unless the request has been answered. A one-way call's caller does not wait for it.
template <class Answer> Status IncomingRequest::answer(Answer answer) {
  Status status;
  engine_.run_as_driver([&] {
    if (std::exchange(replied_, true))
      status = Error{Code::kExists, "the request has been answered"};
    else if (cancelled_)
      status = Error{Code::kCancelled, "the caller has cancelled the request"};
    else if (!acknowledged_)
      status = answer();
  });
  return status;
}

Status IncomingRequest::reply(std::span<const std::byte> result) {
  return answer([&] { return engine_.server().answer(*session_, id(), {result}, *offered_->admission); });
}

Status IncomingRequest::reply(std::size_t size_bytes, const Encoder &encode) {
  return answer([&] {
    return engine_.server().answer(*session_, id(), {{}, size_bytes, &encode}, *offered_->admission);
  });
}

Status IncomingRequest::reply_error(const Error &error) {
  return answer([&] { return engine_.server().answer(*session_, id(), error); });
}

// --- Transfer ---------------------------------------------------------------------------------------------------------

void Transfer::on_complete(Status status) {
  status_ = std::move(status);
  engine_.set_done(done_, waiter_);
}

Status Transfer::await(PeerId peer, Deadline deadline) {
  if (!done_.load(std::memory_order_acquire)) engine_.wait_until(done_, waiter_, deadline);
  if (done_.load(std::memory_order_acquire)) return std::move(status_);
  const Error late{Code::kTimedOut, "the caller's memory did not answer before the call's deadline",
                   nessie::Scope::kPeer};
  engine_.run_as_driver([&] { engine_.give_up_peer(peer, late); });  // completes the transfer
  return late;
}

}  // namespace nssi
