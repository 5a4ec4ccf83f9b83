// SPDX-License-Identifier: BSD-3-Clause
// Frames, credits, and the end; handshake.cpp has the beginning.
#include "nnti/transports/mpi/connection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace nnti::mpi {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatienceWithMpi = 10s;  // with MPI, which still touches memory lent to an operation that has ended
constexpr auto kLingerTime = 5s;        // for a peer to take what was sent before we closed
constexpr std::size_t kMaxEarly = 2 * kCredits + 16;

}  // namespace

std::string MpiConnection::explain() const {
  return fmt::format(
      "over {}, from rank {} to rank {} of a communicator of its own; bulk data goes straight between the two "
      "processes' buffers, in two-sided messages that the registered buffer's owner agrees to",
      mpi_name(), home_.world().rank(), address_.rank);
}

Flow &MpiConnection::new_flow(Flow::Direction direction, int tag, std::span<std::byte> memory, std::uint64_t operation,
                              bool asked_here) {
  Flow &flow = home_.new_flow(direction, address_.rank, tag, memory);
  flow.token = token_;
  flow.operation = operation;
  flow.asked_here = asked_here;
  flow.go_on();
  home_.touch(flow);
  return flow;
}

// --- frames -----------------------------------------------------------------------------------------------------------

bool MpiConnection::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (state_ != State::kOpen) return true;
  FrameHeader header{.type = FrameType::kMessage, .operation = static_cast<std::uint64_t>(kind)};
  if (frames_.waiting() == 0 && post(header, message)) [[likely]]
    return true;
  wants_pump();
  return state_ != State::kOpen;
}

void MpiConnection::send_or_keep(const FrameHeader &header, std::span<const std::byte> body) {
  if (frames_.waiting() == 0 && post(header, body)) return;
  frames_.keep(header, body);
  wants_pump();
}

bool MpiConnection::pump() {
  if (state_ != State::kOpen && state_ != State::kEnding && state_ != State::kClosing) return true;
  const bool all_begun = state_ != State::kOpen || transfers_.begin_waiting();
  frames_.post_waiting(sender());
  FrameHeader header{.type = FrameType::kBye};
  if (frames_.waiting() == 0 && goodbye_ && !goodbye_posted_) {
    goodbye_posted_ = post(header, {});
    home_.attend(*this);
  }
  header.type = FrameType::kCredit;
  if (frames_.credits_due() && !goodbye_posted_) post(header, {});
  return all_begun && frames_.waiting() == 0 && goodbye_ == goodbye_posted_;
}

void MpiConnection::on_frame(const Frame &frame) {
  if (frame.header.sequence != frames_.next()) [[unlikely]]
    return keep_early(frame);
  take(frame);
  while (!early_.empty() && early_.begin()->first == frames_.next()) {
    const auto bytes = early_.extract(early_.begin()).mapped();
    if (auto kept = decode_frame(bytes)) take(*kept);
  }
}

/// MPI delivers in order, but a long frame may be complete after a short one that followed it.
void MpiConnection::keep_early(const Frame &frame) {
  if (early_.size() >= kMaxEarly || frame.header.sequence - frames_.next() > kMaxEarly)
    return break_with({Code::kBadMessage, "the peer's frames are out of order", nessie::Scope::kPeer});
  auto &bytes = early_[frame.header.sequence];
  bytes.resize(sizeof frame.header);
  std::memcpy(bytes.data(), &frame.header, sizeof frame.header);
  bytes.insert(bytes.end(), frame.body.begin(), frame.body.end());
}

void MpiConnection::take(const Frame &frame) {
  if (!frames_.count(frame.header))
    return break_with({Code::kBadMessage, "the peer sent more than its credits allow", nessie::Scope::kPeer});
  if (frames_.credits_due() || frames_.waiting() > 0) wants_pump();
  if (state_ == State::kOpen || state_ < State::kOpen) return handle(frame);
  handle_closing(frame);
}

void MpiConnection::handle(const Frame &frame) {
  const auto type = frame.header.type;
  if (type == FrameType::kMessage && state_ == State::kOpen) [[likely]]
    return home_.events().message(*this, static_cast<MessageKind>(frame.header.operation), frame.body);
  if (type >= kChallenge || state_ != State::kOpen) return handle_handshake(frame);
  if (type == kClear) return transfers_.on_clear(frame.header);
  if (type == kStopped) return transfers_.on_stopped(frame.header);
  switch (type) {
    case FrameType::kGet:
    case FrameType::kPut: return transfers_.serve(frame);
    case FrameType::kDone: return transfers_.on_done(frame);
    case FrameType::kBye: return on_bye();
    default: return;
  }
}

/// The endpoint hears nothing any more; what the peer stops sending still counts.
void MpiConnection::handle_closing(const Frame &frame) {
  if (frame.header.type == FrameType::kDone) return transfers_.on_done(frame);
  if (frame.header.type == kStopped) return transfers_.on_stopped(frame.header);
  if (frame.header.type != FrameType::kBye) return;
  their_goodbye_ = true;
  transfers_.conclude_all();
  home_.attend(*this);
}

// --- what we ask of the peer --------------------------------------------------------------------------------------------

void MpiConnection::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                        Completion &completion) {
  start(true, remote, offset, local, completion);
}

void MpiConnection::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                        Completion &completion) {
  start(false, remote, offset, {const_cast<std::byte *>(local.data()), local.size()}, completion);
}

void MpiConnection::start(bool get, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                          Completion &completion) {
  if (state_ != State::kOpen)
    return completion.on_complete(Error{Code::kPeerLost, "the peer is gone", nessie::Scope::kPeer});
  transfers_.start(get, remote, offset, local, completion);
}

// --- the end --------------------------------------------------------------------------------------------------------

void MpiConnection::on_bye() {
  their_goodbye_ = true;
  transfers_.conclude_all();
  begin_to_end({Code::kPeerLost, "the peer closed the connection", nessie::Scope::kPeer});
}

void MpiConnection::break_with(Error error) {
  if (state_ == State::kClosing) their_goodbye_ = true;  // there is nothing to wait for
  if (state_ < State::kOpen) return end_handshake(error);
  if (state_ != State::kOpen) return home_.attend(*this);
  transfers_.abandon_all();
  begin_to_end(std::move(error));
}

void MpiConnection::begin_to_end(Error why) {
  state_ = State::kEnding;
  why_ = std::move(why);
  patience_ = Deadline::in(kPatienceWithMpi);
  begin_to_close();
}

/// What is owed to the peer: the bytes that it expects, and that no more will come.
void MpiConnection::begin_to_close() {
  frames_.forget_requests();
  transfers_.say_farewell();
  goodbye_ = true;
  linger_ = Deadline::in(kLingerTime);
  if (!pump()) wants_pump();
  home_.attend(*this);
}

void MpiConnection::settle() {
  if (state_ == State::kEnding && (!transfers_.uses_lent_memory() || patience_->passed())) return lose();
  if (state_ == State::kAnswering && patience_->passed()) state_ = State::kClosed;
  if (state_ != State::kClosing) return;
  if (linger_->passed() && !goodbye_posted_) {
    frames_.forget_waiting();
    pump();
  }
  if (linger_->passed() || (their_goodbye_ && said_goodbye())) state_ = State::kClosed;
}

void MpiConnection::lose() {
  state_ = State::kClosing;
  const Error error{Code::kPeerLost, why_->message, nessie::Scope::kPeer, why_->cause};
  for (auto *completion : transfers_.take_completions()) completion->on_complete(error);
  home_.events().lost(*this, Loss::kGone, why_->code == Code::kBadMessage ? *why_ : error);
}

void MpiConnection::close() {
  end([this] { return !transfers_.uses_lent_memory(); });
}

void MpiConnection::abort() {
  end([this] { return !transfers_.uses_memory(); });
}

/// Returns when memory is `free`, or MPI has had its time.
void MpiConnection::end(const std::function<bool()> &free) {
  if (state_ == State::kClosing || state_ == State::kClosed) return;
  if (state_ < State::kOpen) return give_up();
  const auto completions = transfers_.take_completions();
  const bool was_open = state_ == State::kOpen;
  state_ = State::kClosing;
  if (was_open) begin_to_close();
  home_.poll_until(free, Deadline::in(kPatienceWithMpi));
  for (auto *completion : completions) completion->on_complete(Error{Code::kCancelled, "the connection was closed"});
}

Deadline MpiConnection::timer() const {
  switch (state_) {
    case State::kAnswering:
    case State::kEnding: return *patience_;
    case State::kClosing: return *linger_;
    default: return Deadline::never();
  }
}

}  // namespace nnti::mpi
