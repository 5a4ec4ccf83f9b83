// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/framed/connection.hpp"

#include <sys/socket.h>

#include <chrono>
#include <cstring>

namespace nnti::framed {
namespace {

using namespace std::chrono_literals;

constexpr auto kDrainTime = 20ms;    // for frames that a dead peer had sent
constexpr auto kLingerTime = 5s;     // for a peer to take what was sent before we closed
constexpr auto kPatienceAtEnd = 2s;  // with a network that still touches memory of a connection that has ended
constexpr std::size_t kMaxWaitingAnswers = 65536;  // for a peer that gives no credits

FrameHeader header_of(FrameType type) {
  FrameHeader header{.type = type};
  return header;
}

}  // namespace

void Connection::open() {
  accept();
  home_.attend(*this);
  frames_.begin();
  home_.pump_later(*this);
}

// --- frames -------------------------------------------------------------------------------------------------------------

bool Connection::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (state_ != State::kOpen || breaking()) return true;
  auto header = header_of(FrameType::kMessage);
  header.operation = static_cast<std::uint64_t>(kind);
  if (frames_.waiting() == 0 && post(header, message)) return true;
  // With credits it is on its way, even if the network is still connecting, or busy: it is not lost by close().
  if (frames_.credits_for_more()) {
    send_or_keep(header, message);
    return true;
  }
  home_.pump_later(*this);
  return broken_.has_value();
}

void Connection::send_or_keep(const FrameHeader &header, std::span<const std::byte> body) {
  if (!active()) return;
  if (frames_.waiting() == 0 && post(header, body)) return;
  if (frames_.waiting_answers() >= kMaxWaitingAnswers) return break_protocol("the peer asks, and takes no answers");
  frames_.keep(header, body);
  home_.pump_later(*this);
}

void Connection::answer_done(std::uint64_t operation, Code result, std::span<const std::byte> body) {
  auto header = header_of(FrameType::kDone);
  header.operation = operation;
  header.result = static_cast<std::uint32_t>(result);
  send_or_keep(header, body);
}

bool Connection::pump() {
  if (!healthy()) return true;
  transfers_.pump();
  frames_.post_waiting(sender());
  if (frames_.waiting() == 0 && goodbye_ && !goodbye_posted_) goodbye_posted_ = post(header_of(FrameType::kBye), {});
  if (frames_.credits_due()) post(header_of(FrameType::kCredit), {});
  return frames_.waiting() == 0 && !frames_.credits_due() && goodbye_ == goodbye_posted_;
}

void Connection::on_frame(const Frame &frame) {
  if (!active() || breached()) return;
  if (dies_at_) dies_at_ = Deadline::in(kDrainTime);
  if (frame.header.sequence != frames_.next() && may_lose_frames())
    return break_with({Code::kIo, "frames were lost: the network's connection broke", nessie::Scope::kPeer});
  if (frame.header.sequence != frames_.next() || !frames_.count(frame.header))
    return break_protocol("the peer sent more than its credits allow, or out of order");
  if (frames_.credits_due() || frames_.waiting() > 0) home_.pump_later(*this);
  if (state_ == State::kOpen)
    handle(frame);
  else if (frame.header.type == FrameType::kBye)
    state_ = State::kClosed;
  if (state_ == State::kClosed) home_.attend(*this);
}

void Connection::handle(const Frame &frame) {
  switch (frame.header.type) {
    case FrameType::kMessage:
      return home_.events().message(*this, static_cast<MessageKind>(frame.header.operation), frame.body);
    case FrameType::kGet:
    case FrameType::kPut: return serve(frame);
    case FrameType::kDone: return on_done(frame);
    case FrameType::kBye: return lose(Loss::kGone, lost_error("the peer closed the connection"), false);
    case FrameType::kProbe: frames_.ask_for_credits(); return home_.pump_later(*this);
    case FrameType::kCredit: return;
    default: return break_protocol("the peer sends what cannot be read");
  }
}

void Connection::serve(const Frame &frame) {
  const auto &request = frame.header;
  const bool get = request.type == FrameType::kGet;
  Memory *memory = home_.find(request.key);
  const auto needed = get ? Rights::kRemoteRead : Rights::kRemoteWrite;
  if (const Code code = check(memory, needed, request.offset, request.length); code != Code::kOk)
    return answer_done(request.operation, code);
  if (request.length > kMaxInlineBytes) return serve_long(frame, *memory);
  const auto range = memory->range(request.offset, request.length);
  if (get) return answer_done(request.operation, Code::kOk, range);
  if (!range.empty()) std::memcpy(range.data(), frame.body.data(), range.size());
  answer_done(request.operation, Code::kOk);
}

void Connection::serve_long(const Frame &frame, Memory &memory) {
  const auto &request = frame.header;
  if (request.type != FrameType::kGet || !frame.body.empty())
    return break_protocol("the peer asks for what cannot be done");
  if (!transfers_.serve_get(request.operation, {Code::kOk, memory.range(request.offset, request.length), &memory}))
    break_protocol("the peer asks for more at once than is allowed");
}

void Connection::on_done(const Frame &frame) {
  on_answered(frame.header.operation);
  if (!transfers_.answered(frame.header.operation, received_code(frame.header.result), frame.body))
    break_protocol("the peer's answer makes no sense");
}

TransfersHost::Target Connection::target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) {
  const Memory *memory = home_.find(key);
  if (const Code code = check(memory, Rights::kRemoteWrite, offset, length); code != Code::kOk) return {code, {}, {}};
  return {Code::kOk, memory->range(offset, length), memory};
}

void Connection::answer(std::uint64_t operation, Code result) {
  if (moves_data()) answer_done(operation, result);
}

// --- gets and puts --------------------------------------------------------------------------------------------------------

void Connection::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                     Completion &completion) {
  start(true, remote, offset, local, completion);
}

void Connection::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                     Completion &completion) {
  start(false, remote, offset, {const_cast<std::byte *>(local.data()), local.size()}, completion);
}

void Connection::start(bool get, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                       Completion &completion) {
  if (state_ != State::kOpen || breaking()) return completion.on_complete(lost_error("the peer is gone"));
  if (remote.slot != 0) return completion.on_complete(unknown_key());  // not made by this transport
  const auto needed = get ? Rights::kRemoteRead : Rights::kRemoteWrite;
  if (auto status = check_access(remote.size_bytes, remote.rights, offset, local.size(), needed); !status.ok())
    return completion.on_complete(status);
  auto header = header_of(get ? FrameType::kGet : FrameType::kPut);
  header.key = remote.key;
  header.offset = offset;
  header.length = local.size();
  if (local.size() > kMaxInlineBytes) return start_long(header, remote, local, completion);
  header.operation =
      get ? transfers_.begin_get(local, completion) : transfers_.begin_put(remote, offset, local, completion);
  send_or_keep(header, get ? std::span<const std::byte>() : local);
}

void Connection::start_long(FrameHeader header, const RemoteBuffer &remote, std::span<std::byte> local,
                            Completion &completion) {
  if (header.type == FrameType::kPut) {
    transfers_.begin_put(remote, header.offset, local, completion);
    return;
  }
  header.operation = transfers_.begin_get(local, completion);
  send_or_keep(header, {});
}

// --- the end --------------------------------------------------------------------------------------------------------------

void Connection::on_socket() {
  if (!active() || socket_ended_) return;
  auto page = socket_->receive();
  if (page.ok()) {
    if (page->has_value()) break_protocol("the peer speaks out of turn");
    return;
  }
  socket_ended_ = true;
  // The kernel of a process that ends closes its sockets in order; of a link that fails it reports an error.
  if (page.error().cause == 0) loss_ = Loss::kGone;
  home_.unwatch(socket());
  if (state_ == State::kClosing)
    state_ = State::kClosed;
  else
    dies_at_ = Deadline::in(kDrainTime);
  home_.attend(*this);
}

void Connection::break_with(Error error) {
  if (broken_ || reapable()) return;
  broken_ = std::move(error);
  if (breached()) loss_ = Loss::kGone;
  if (state_ == State::kConnecting) return home_.ask_again();
  if (!dies_at_) dies_at_ = Deadline::in(kDrainTime);  // the socket's end may tell that the process ended
  home_.attend(*this);
}

void Connection::sever() {
  break_with({Code::kTimedOut, "the peer stopped in the middle of a transfer", nessie::Scope::kPeer});
  leave(true);
}

void Connection::settle(bool queue_is_empty) {
  if (state_ == State::kClosing && (broken_ || linger_->passed())) state_ = State::kClosed;
  if (state_ != State::kOpen) return;
  if (broken_ && !socket_ended_) on_socket();
  if (broken_ && (loss_ == Loss::kGone || dies_at_->passed()))
    return lose(loss_, breached() ? *broken_ : lost_error(broken_->message, broken_->cause), true);
  // What the network has between two processes may be of use to the peer's next connection already.
  if (!broken_ && dies_at_ && dies_at_->passed() && queue_is_empty)
    lose(loss_, lost_error(loss_ == Loss::kGone ? "the peer's process ended" : "the connection to the peer broke"),
         false);
}

Deadline Connection::timer() const {
  Deadline first = Deadline::never();
  if (dies_at_) first = first.earlier(*dies_at_);
  if (linger_) first = first.earlier(*linger_);
  return active() ? first : Deadline::never();
}

void Connection::abandon(Code code, std::string_view why, bool at_once) {
  frames_.forget_waiting();
  home_.unwatch(socket());
  transfers_.stop_all();
  leave(at_once || peer_reaches_us());
  for (const auto deadline = Deadline::in(kPatienceAtEnd); transfers_.in_flight() > 0 && !deadline.passed();)
    home_.work();
  home_.attend(*this);
  for (auto *completion : transfers_.take_ours())
    completion->on_complete(Error{code, std::string(why), nessie::Scope::kPeer});
}

void Connection::reset_socket() {
  const linger at_once{1, 0};
  ::setsockopt(socket(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void Connection::lose(Loss loss, const Error &error, bool at_once) {
  state_ = State::kLost;
  if (loss == Loss::kBroken) reset_socket();
  abandon(Code::kPeerLost, error.message, at_once);
  home_.events().lost(*this, loss, error);
}

void Connection::close() {
  if (state_ != State::kOpen) return;
  constexpr const char *kWhy = "the connection was closed";
  transfers_.stop_all();
  if (transfers_.in_flight() > 0 || peer_reaches_us() || breaking()) {
    state_ = State::kClosed;
    return abandon(Code::kCancelled, kWhy, true);
  }
  state_ = State::kClosing;
  linger_ = Deadline::in(kLingerTime);
  goodbye_ = true;
  frames_.forget_requests();
  auto completions = transfers_.take_ours();
  // If the network has everything, the socket's end is farewell enough, even if this process makes no more progress:
  // the peer reads on until nothing comes any more.
  if (frames_.waiting() == 0 && has_left()) ::shutdown(socket(), SHUT_WR);
  home_.pump_later(*this);
  home_.attend(*this);
  pump();
  for (auto *completion : completions)
    completion->on_complete(Error{Code::kCancelled, kWhy, nessie::Scope::kOperation});
}

void Connection::abort() {
  if (!active()) return;
  state_ = State::kClosed;
  reset_socket();
  abandon(Code::kCancelled, "the connection was closed", true);
}

}  // namespace nnti::framed
