// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/serve/request.hpp>

#include <nssi/drive/core.hpp>
#include <nssi/wire/coarse_clock.hpp>

#include <cstring>

namespace nssi {

namespace {

/// A pool's threads do not: somebody else drives.
void let_progress(Core &core) {
  if (Worker::current() != nullptr) return;
  if (!core.in_fiber()) return core.poke();
  core.wake(core.current_strand());
  core.suspend(Deadline::never());
}

}  // namespace

std::string_view Move::name() const {
  switch (what) {
    case What::kGet: return "pull";
    case What::kPut: return "push";
    case What::kArgs: return "fetch arguments";
    case What::kSegments: break;
  }
  return "fetch segments";
}

TransferState::~TransferState() {
  if (!done_.load(std::memory_order_acquire) && !await(Deadline::never())) give_up();
}

void TransferState::start() {
  limit_ = request_.transfer_limit();
  for (;;) {
    const auto in_place = request_.in_place(move_);
    bool is_launched = false;
    core_.run_as_driver([&] { is_launched = launch(!in_place.empty()); });
    if (is_launched && !in_place.empty() && !is_over_) copy(in_place);
    if (is_launched) return;
    if (auto status = request_.fetch_segments(); !status.ok()) return end(std::move(status));
  }
}

/// By the pool's thread itself, while the driver goes on.
void TransferState::copy(std::span<const std::byte> source) {
  std::memcpy(move_.memory.data(), source.data(), source.size());
  core_.run_as_driver([&] { on_complete({}); });
}

/// False: where the data are has to be fetched first. `in_place`: whoever starts it moves the bytes.
bool TransferState::launch(bool in_place) {
  if (move_.is_data() && request_.needs_segments()) return false;
  status_ = request_.may_move(move_);
  is_over_ = !status_.ok();
  if (is_over_) return true;
  caller_ = request_.caller();
  done_.store(false, std::memory_order_relaxed);
  began_ = request_.begin_transfer(*this);
  patience_.reset();
  pieces_ = 1;
  if (in_place) return true;
  request_.begin_pieces(move_, *this);
  on_complete({});
  return true;
}

void TransferState::on_complete(Status status) {
  if (!status.ok() && status_.ok()) status_ = std::move(status);
  if (--pieces_ != 0) return;
  request_.end_transfer(*this, move_, began_, status_.code());
  core_.set_done(done_, waiter_);
}

bool TransferState::test() {
  if (is_over_) return true;
  if (patience_ || !done_.load(std::memory_order_acquire)) let_progress(core_);
  if (done_.load(std::memory_order_acquire) || has_passed(limit_)) (void)wait(Deadline::now());
  return is_over_;
}

Status TransferState::wait(Deadline deadline) {
  while (!is_over_) {
    if (!await(deadline)) {
      if (!limit_.passed() && !core_.closing()) return Error{Code::kTimedOut, "the transfer is still under way"};
      give_up();
    } else if (status_.ok() || !request_.is_interrupted(status_.code(), caller_)) {
      is_over_ = true;
    } else if (!resume(deadline)) {
      return Error{Code::kTimedOut, "the transfer was interrupted, and its caller is not back yet"};
    }
  }
  return status_;
}

/// It was interrupted: begins it again when the caller is back, or ends. False: not by then.
bool TransferState::resume(Deadline deadline) {
  if (!patience_) patience_ = request_.patience();
  if (request_.caller_returns(caller_, patience_->earlier(deadline)))
    start();
  else if (!patience_->passed() && deadline.passed())
    return false;
  else
    is_over_ = true;
  return true;
}

/// False: it is still under way.
bool TransferState::await(Deadline deadline) {
  if (!done_.load(std::memory_order_acquire)) core_.wait_until(done_, waiter_, deadline.earlier(limit_));
  return done_.load(std::memory_order_acquire);
}

/// The handler's memory is lent to a peer that does not answer: its connection is ended, and with it the transfer.
void TransferState::give_up() {
  const Error late{Code::kTimedOut, "the caller's memory did not answer before the call's deadline",
                   nessie::Scope::kPeer};
  core_.run_as_driver([&] {
    if (!done_.load()) core_.give_up_peer(caller_, late);
  });
  end(late);
}

void TransferState::end(Status status) {
  status_ = std::move(status);
  is_over_ = true;
}

// --- Transfer ---------------------------------------------------------------------------------------------------------

Transfer::Transfer() = default;
Transfer::Transfer(std::unique_ptr<TransferState> state) : state_(std::move(state)) {}
Transfer::Transfer(Transfer &&) noexcept = default;
Transfer &Transfer::operator=(Transfer &&) noexcept = default;
Transfer::~Transfer() = default;
bool Transfer::test() { return !state_ || state_->test(); }

Status Transfer::wait(Deadline deadline) {
  if (!state_) return Error{Code::kInvalidArgument, "there is no transfer to wait for"};
  return state_->wait(deadline);
}

}  // namespace nssi
