// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/connection.hpp"

#include "nnti/transport/registration_check.hpp"
#include "nnti/transports/ucx/transport.hpp"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace nnti::ucx {

namespace {

using namespace std::chrono_literals;

constexpr auto kDrainTime = 20ms;           // for frames that a dead peer had sent
constexpr auto kLingerTime = 5s;            // for a peer to take what was sent before we closed
constexpr std::size_t kMaxWaiting = 65536;  // answers for a peer that gives no credits

Error lost_error(std::string message, int cause = 0) {
  return {Code::kPeerLost, std::move(message), nessie::Scope::kPeer, cause};
}

}  // namespace

UcxConnection::~UcxConnection() = default;

Transport &UcxConnection::transport() { return transport_; }

std::string UcxConnection::explain() const {
  if (lane_)
    return "over the network, beside UCX: it has nothing but TCP here, and a TCP connection of our own is faster "
           "(nnti.lane)";
  return fmt::format(
      "over the network with UCX ({}); bulk data goes in chunks, which the side that owns the registered buffer checks",
      link_ ? link_->devices() : "closed");
}

Result<std::uint64_t> UcxConnection::learn(std::span<const std::byte> blob) {
  auto hello = decode_hello(blob);
  if (!hello.ok()) return hello.error();
  hello_ = std::move(*hello);
  return hello_.token;
}

Status UcxConnection::knock() {
  auto link = transport_.worker().connect(hello_.address, token_);
  if (!link.ok()) return link.error();
  link_ = std::move(*link);
  FrameHeader header;
  header.type = FrameType::kCredit;
  post(header, {});
  return {};
}

void UcxConnection::on_knock(const FrameHeader &header) {
  if (header.type != FrameType::kCredit || header.credits != 0 || !count(header))
    return break_with({Code::kBadMessage, "the peer speaks before it is asked", nessie::Scope::kPeer});
  peer_knocked_ = true;
  if (state_ == State::kConnecting) return transport_.ask_again();
  if (auto status = knock(); !status.ok()) break_with(status.error());
}

Result<bool> UcxConnection::reached() {
  if (broken_) return lost_error(broken_->message, broken_->cause);
  if (auto page = socket_->receive(); !page.ok()) return page.error();
  return peer_knocked_ && sends_in_flight_ == 0;
}

void UcxConnection::open() {
  accept();
  transport_.peers().attend(*this);
  credits_ = kCredits;
  owed_ = kCredits;
  pump_later();
}

// --- frames -------------------------------------------------------------------------------------------------------------

bool UcxConnection::post(FrameHeader header, std::span<const std::byte> body) {
  const bool costs = header.type != FrameType::kCredit;
  if ((!link_ && !lane_) || (costs && credits_ == 0)) return false;
  header.token = hello_.token;
  header.credits = static_cast<std::uint16_t>(owed_);
  header.size = static_cast<std::uint32_t>(body.size());
  header.sequence = next_sent_;
  if (!hand_over(header, body)) return false;
  ++next_sent_;
  uncredited_ -= std::min(uncredited_, owed_);
  owed_ = 0;
  credits_ -= costs ? 1 : 0;
  return true;
}

/// To UCX, or to the lane.
bool UcxConnection::hand_over(const FrameHeader &header, std::span<const std::byte> body) {
  if (lane_) {
    lane_->send_frame(std::as_bytes(std::span(&header, 1)), body);
    return true;
  }
  const auto status = transport_.send_frame(*this, *link_, header, body);
  if (status == UCS_INPROGRESS) ++sends_in_flight_;
  if (status == UCS_OK || status == UCS_INPROGRESS) return true;
  break_with(ucx_error("cannot send to the peer", status));
  return false;
}

void UcxConnection::on_sent(ucs_status_t status) {
  --sends_in_flight_;
  if (state_ == State::kConnecting) transport_.ask_again();
  if (status != UCS_OK) break_with(ucx_error("the peer cannot be reached any more", status));
}

bool UcxConnection::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (state_ != State::kOpen || broken_ || dies_at_) return true;
  FrameHeader header;
  header.type = FrameType::kMessage;
  header.operation = static_cast<std::uint64_t>(kind);
  if (waiting_.empty() && post(header, message)) return true;
  pump_later();
  return broken_.has_value();
}

void UcxConnection::send_or_keep(const FrameHeader &header, std::span<const std::byte> body, bool copy) {
  if (!active()) return;
  if (waiting_.empty() && post(header, body)) return;
  if (waiting_.size() >= kMaxWaiting)
    return break_with({Code::kBadMessage, "the peer asks, and takes no answers", nessie::Scope::kPeer});
  Waiting frame{header, body, {}};
  if (copy) {
    frame.owned.assign(body.begin(), body.end());
    frame.body = frame.owned;
  }
  waiting_.push_back(std::move(frame));
  pump_later();
}

void UcxConnection::answer_done(std::uint64_t operation, Code result, std::span<const std::byte> body) {
  FrameHeader header;
  header.type = FrameType::kDone;
  header.operation = operation;
  header.result = static_cast<std::uint32_t>(result);
  send_or_keep(header, body, true);
}

bool UcxConnection::pump() {
  if (!healthy()) return true;
  transfers_.pump();
  while (!waiting_.empty() && post(waiting_.front().header, waiting_.front().body)) waiting_.pop_front();
  FrameHeader header;
  if (waiting_.empty() && goodbye_ && !goodbye_posted_) {
    header.type = FrameType::kBye;
    goodbye_posted_ = post(header, {});
  }
  header.type = FrameType::kCredit;
  if (owed_ >= kCredits / 2) post(header, {});
  return waiting_.empty() && owed_ < kCredits / 2 && goodbye_ == goodbye_posted_;
}

/// False: the peer sent what it may not.
bool UcxConnection::count(const FrameHeader &header) {
  if (header.sequence != next_received_++) return false;
  credits_ += header.credits;
  if (credits_ > kCredits) return false;
  if (header.type == FrameType::kCredit) return true;
  ++uncredited_;
  ++owed_;
  return uncredited_ <= kCredits;
}

void UcxConnection::on_frame(const Frame &frame) {
  if (!active() || breached()) return;
  if (dies_at_) dies_at_ = Deadline::in(kDrainTime);
  if (!peer_knocked_) return on_knock(frame.header);
  if (!count(frame.header))
    return break_with(
        {Code::kBadMessage, "the peer sent more than its credits allow, or out of order", nessie::Scope::kPeer});
  if (owed_ >= kCredits / 2 || !waiting_.empty()) pump_later();
  if (state_ == State::kOpen)
    handle(frame);
  else if (frame.header.type == FrameType::kBye)
    state_ = State::kClosed;
  if (state_ == State::kClosed) transport_.peers().attend(*this);
}

void UcxConnection::handle(const Frame &frame) {
  switch (frame.header.type) {
    case FrameType::kMessage:
      return transport_.events().message(*this, static_cast<MessageKind>(frame.header.operation), frame.body);
    case FrameType::kGet:
    case FrameType::kPut: return serve(frame);
    case FrameType::kDone: return on_done(frame);
    case FrameType::kBye: return lose(Loss::kGone, lost_error("the peer closed the connection"));
    case FrameType::kCredit: return;
  }
}

void UcxConnection::serve(const Frame &frame) {
  const auto &request = frame.header;
  const bool get = request.type == FrameType::kGet;
  const Memory *memory = memory_with(request.key);
  const Code code = memory == nullptr ? Code::kRefused
                                      : memory->check(get ? Rights::kRemoteRead : Rights::kRemoteWrite, request.offset,
                                                      request.length);
  if (code != Code::kOk) return answer_done(request.operation, code);
  const auto range = memory->region().bytes.subspan(request.offset, request.length);
  if (get && range.size() > kMaxInlineBytes) {
    const bool served = lane_ ? lane_->transfers().serve_get(request.operation, {Code::kOk, range, memory})
                              : transfers_.serve_get(request.operation, *memory, range);
    if (!served)
      break_with({Code::kBadMessage, "the peer asks for more at once than is allowed", nessie::Scope::kPeer});
    return;
  }
  if (get) return answer_done(request.operation, Code::kOk, range);
  if (!range.empty()) std::memcpy(range.data(), frame.body.data(), range.size());
  answer_done(request.operation, Code::kOk);
}

void UcxConnection::on_done(const Frame &frame) {
  if (lane_ && lane_->transfers().answered(frame.header.operation, received_code(frame.header.result))) return;
  if (!transfers_.answered(frame.header.operation, received_code(frame.header.result), frame.body))
    break_with({Code::kBadMessage, "the peer's answer makes no sense", nessie::Scope::kPeer});
}

// --- gets and puts --------------------------------------------------------------------------------------------------------

Status UcxConnection::check(Rights needed, const RemoteBuffer &remote, std::uint64_t offset,
                            std::size_t size_bytes) const {
  if (state_ != State::kOpen || broken_ || dies_at_) return lost_error("the peer is gone");
  if (remote.slot != 0) return unknown_key();  // not made by this transport
  return check_access(remote.size_bytes, remote.rights, offset, size_bytes, needed);
}

void UcxConnection::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                        Completion &completion) {
  if (auto status = check(Rights::kRemoteRead, remote, offset, local.size()); !status.ok())
    return completion.on_complete(status);
  FrameHeader header;
  header.type = FrameType::kGet;
  if (lane_ && local.size() > kMaxInlineBytes) {
    header.operation = transfers_.new_operation();
    lane_->transfers().begin_get(header.operation, local, completion);
  } else {
    header.operation = transfers_.begin_get(local, completion);
  }
  header.key = remote.key;
  header.offset = offset;
  header.length = local.size();
  send_or_keep(header, {}, false);
}

void UcxConnection::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                        Completion &completion) {
  if (auto status = check(Rights::kRemoteWrite, remote, offset, local.size()); !status.ok())
    return completion.on_complete(status);
  if (lane_ && local.size() > kMaxInlineBytes)
    return lane_->transfers().begin_put(transfers_.new_operation(), remote, offset, local, completion);
  FrameHeader header;
  header.type = FrameType::kPut;
  header.operation = transfers_.begin_put(remote, offset, local, completion);
  header.key = remote.key;
  header.offset = offset;
  header.length = local.size();
  if (local.size() <= kMaxInlineBytes) send_or_keep(header, local, false);
}

const Memory *UcxConnection::memory_with(std::uint64_t key) const { return transport_.memory_with(key); }

ChunkSlot &UcxConnection::new_chunk(Work::Kind kind, const ChunkHeader &header) {
  ChunkSlot &chunk = transport_.chunks().take();
  chunk.kind = kind;
  chunk.token = token_;
  chunk.operation = header.operation;
  chunk.type = header.type;
  chunk.header = header;
  chunk.header.token = hello_.token;
  return chunk;
}

void UcxConnection::give_back(ChunkSlot &chunk) { transport_.chunks().give_back(chunk); }

ucs_status_t UcxConnection::send_chunk(ChunkSlot &chunk, std::span<const std::byte> bytes) {
  return link_->send_chunk(chunk.header, bytes, chunk);
}

ucs_status_t UcxConnection::receive(const Payload &payload, std::span<std::byte> into, ChunkSlot &chunk) {
  return transport_.worker().receive(payload, into, chunk);
}

void UcxConnection::pump_later() { transport_.peers().pump_later(*this); }

void UcxConnection::attend_transfers() { transport_.attend_transfers(*this); }

// --- the end --------------------------------------------------------------------------------------------------------------

void UcxConnection::on_socket() {
  if (!active() || socket_ended_) return;
  auto page = socket_->receive();
  if (page.ok()) {
    if (page->has_value()) break_with({Code::kBadMessage, "the peer speaks out of turn", nessie::Scope::kPeer});
    return;
  }
  socket_ended_ = true;
  // The kernel of a process that ends closes its sockets in order; of a link that fails it reports an error.
  if (page.error().cause == 0) loss_ = Loss::kGone;
  transport_.peers().forget_socket(*this);
  if (state_ == State::kClosing)
    state_ = State::kClosed;
  else
    dies_at_ = Deadline::in(kDrainTime);
  transport_.peers().attend(*this);
}

void UcxConnection::break_with(Error error) {
  if (broken_ || reapable()) return;
  broken_ = std::move(error);
  if (breached()) loss_ = Loss::kGone;
  if (state_ == State::kConnecting) return transport_.ask_again();
  if (!dies_at_) dies_at_ = Deadline::in(kDrainTime);  // the socket's end may tell that the process ended
  transport_.peers().attend(*this);
}

void UcxConnection::sever() {
  break_with({Code::kTimedOut, "the peer stopped in the middle of a transfer", nessie::Scope::kPeer});
  link_.reset();
  if (lane_) lane_->close();
}

void UcxConnection::settle(bool queue_is_empty) {
  if (state_ == State::kClosing && (broken_ || linger_->passed())) state_ = State::kClosed;
  if (state_ != State::kOpen) return;
  if (broken_ && !socket_ended_) on_socket();
  if (broken_ && (loss_ == Loss::kGone || dies_at_->passed()))
    return lose(loss_, breached() ? *broken_ : lost_error(broken_->message, broken_->cause));
  if (!broken_ && dies_at_ && dies_at_->passed() && queue_is_empty)
    lose(loss_, lost_error(loss_ == Loss::kGone ? "the peer's process ended" : "the connection to the peer broke"));
}

Deadline UcxConnection::timer() const {
  Deadline first = Deadline::never();
  if (dies_at_) first = first.earlier(*dies_at_);
  if (linger_) first = first.earlier(*linger_);
  return active() ? first : Deadline::never();
}

void UcxConnection::abandon(Code code, std::string_view why) {
  waiting_.clear();
  transport_.peers().forget_socket(*this);
  transfers_.stop_theirs();
  link_.reset();
  if (lane_) lane_->close();
  transport_.wait_for_transfers([this] { return transfers_.in_flight(); });
  transport_.peers().attend(*this);
  auto completions = transfers_.take_ours();
  if (lane_) std::ranges::copy(lane_->transfers().take_ours(), std::back_inserter(completions));
  for (auto *completion : completions) completion->on_complete(Error{code, std::string(why), nessie::Scope::kPeer});
}

void UcxConnection::reset_socket() {
  const linger at_once{1, 0};
  ::setsockopt(socket(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void UcxConnection::lose(Loss loss, const Error &error) {
  state_ = State::kLost;
  if (loss == Loss::kBroken) reset_socket();
  abandon(Code::kPeerLost, error.message);
  transport_.events().lost(*this, loss, error);
}

void UcxConnection::close() {
  if (state_ != State::kOpen) return;
  constexpr const char *kWhy = "the connection was closed";
  if (transfers_.in_flight() > 0 || broken_ || dies_at_) {
    state_ = State::kClosed;
    return abandon(Code::kCancelled, kWhy);
  }
  state_ = State::kClosing;
  linger_ = Deadline::in(kLingerTime);
  goodbye_ = true;
  transfers_.stop_theirs();
  std::erase_if(waiting_, [](const Waiting &frame) {
    return frame.header.type == FrameType::kGet || frame.header.type == FrameType::kPut;
  });
  auto completions = transfers_.take_ours();
  if (lane_) std::ranges::copy(lane_->transfers().take_ours(), std::back_inserter(completions));
  // If UCX has everything, the socket's end is farewell enough, even if this process makes no more progress: the peer
  // reads on until nothing comes any more.
  if (waiting_.empty() && sends_in_flight_ == 0 && !(lane_ && lane_->has_unsent())) ::shutdown(socket(), SHUT_WR);
  pump_later();
  transport_.peers().attend(*this);
  pump();
  for (auto *completion : completions)
    completion->on_complete(Error{Code::kCancelled, kWhy, nessie::Scope::kOperation});
}

void UcxConnection::abort() {
  if (!active()) return;
  state_ = State::kClosed;
  reset_socket();
  abandon(Code::kCancelled, "the connection was closed");
}

}  // namespace nnti::ucx
