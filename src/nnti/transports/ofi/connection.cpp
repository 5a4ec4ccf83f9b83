// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/connection.hpp"

#include "nnti/transport/registration_check.hpp"
#include "nnti/transports/ofi/transport.hpp"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace nnti::ofi {

namespace {

using namespace std::chrono_literals;

constexpr auto kDrainTime = 20ms;  // for frames that a dead peer had sent
constexpr auto kLingerTime = 5s;   // for a peer to take what was sent before we closed

Error lost_error(std::string message, int cause = 0) {
  return {Code::kPeerLost, std::move(message), nessie::Scope::kPeer, cause};
}

}  // namespace

OfiConnection::~OfiConnection() { leave_fabric(Fabric::Removal::kLater); }

Transport &OfiConnection::transport() { return transport_; }

/// The accepting side knows before its lane is there.
std::size_t OfiConnection::max_message_bytes() const {
  return peer_offers_lane_ && transport_.peers().offers_lanes() ? kMaxMessageBytes : kMaxInlineBytes;
}

std::string OfiConnection::explain() const {
  if (lane_)
    return fmt::format(
        "over the network, beside libfabric's provider {}: it has nothing but TCP, and a TCP connection of our own is "
        "faster (nnti.lane)",
        transport_.fabric().provider());
  return fmt::format(
      "over the network with libfabric's provider {}; bulk data is written and read directly between the "
      "two processes' buffers by the side that owns the registered one",
      transport_.fabric().provider());
}

Result<std::uint64_t> OfiConnection::learn(std::span<const std::byte> blob) {
  const auto hello = decode_hello(blob);
  if (!hello.ok()) return hello.error();
  if (hello->provider != transport_.fabric().provider())
    return Error{Code::kUnsupported,
                 fmt::format("the peer uses libfabric's provider {}, this process {}; set nnti.ofi.provider",
                             hello->provider, transport_.fabric().provider())};
  auto address = transport_.fabric().add_peer(hello->name);
  if (!address.ok()) return address.error();
  name_ = hello->name;
  peer_offers_lane_ = hello->lane;
  address_ = *address;
  their_token_ = hello->token;
  on_fabric_ = true;
  transport_.post_receives();
  return their_token_;
}

void OfiConnection::open() {
  accept();
  credits_ = kCredits;
  owed_ = kCredits;
  transport_.peers().pump_later(*this);
}

// --- frames -----------------------------------------------------------------------------------------------------------

bool OfiConnection::post(FrameHeader header, std::span<const std::byte> body) {
  const bool costs = header.type != FrameType::kCredit && header.type != FrameType::kProbe;
  if (costs && credits_ == 0) return false;
  header.token = their_token_;
  header.number = next_frame_;
  header.credits = static_cast<std::uint16_t>(owed_);
  header.size = static_cast<std::uint32_t>(body.size());
  if (!hand_over(header, body)) return false;
  uncredited_ -= std::min(uncredited_, owed_);
  owed_ = 0;
  ++next_frame_;
  credits_ -= costs ? 1 : 0;
  return true;
}

/// To the provider, or to the lane.
bool OfiConnection::hand_over(const FrameHeader &header, std::span<const std::byte> body) {
  if (!lane_) {
    if (!transport_.post_frame(*this, header, body)) return false;
    ++sends_in_flight_;
    return true;
  }
  lane_->send_frame(std::as_bytes(std::span(&header, 1)), body);
  return true;
}

bool OfiConnection::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (state_ != State::kOpen || breaking()) return true;
  FrameHeader header;
  header.type = FrameType::kMessage;
  header.operation = static_cast<std::uint64_t>(kind);
  if (waiting_.empty() && post(header, message)) return true;
  // With credits it is on its way, even if the provider is still connecting, or busy: it is not lost by close().
  if (waiting_.size() < credits_) {
    answer(header, message);
    return true;
  }
  transport_.peers().pump_later(*this);
  return broken_.has_value();
}

void OfiConnection::send_or_keep(const FrameHeader &header, std::span<const std::byte> body, bool copy) {
  if (waiting_.empty() && post(header, body)) return;
  Waiting frame{header, body, {}};
  if (copy) {
    frame.owned.assign(body.begin(), body.end());
    frame.body = frame.owned;
  }
  waiting_.push_back(std::move(frame));
  transport_.peers().pump_later(*this);
}

void OfiConnection::answer(const FrameHeader &header, std::span<const std::byte> body) {
  send_or_keep(header, body, true);
}

bool OfiConnection::pump() {
  if (!active() || broken_) return true;
  while (!waiting_.empty() && post(waiting_.front().header, waiting_.front().body)) waiting_.pop_front();
  FrameHeader header;
  if (waiting_.empty() && goodbye_ && !goodbye_posted_) {
    header.type = FrameType::kBye;
    goodbye_posted_ = post(header, {});
  }
  header.type = FrameType::kCredit;
  if ((owed_ >= kCredits / 2 || answers_probe_) && post(header, {})) answers_probe_ = false;
  return waiting_.empty() && owed_ < kCredits / 2 && !answers_probe_ && goodbye_ == goodbye_posted_;
}

void OfiConnection::watch_frames() {
  if (std::exchange(heard_, false) || !expects_frames() || breaking()) {
    quiet_ = 0;
    next_probe_ = 1;
    return;
  }
  if (++quiet_ < next_probe_) return;
  next_probe_ *= 2;
  FrameHeader header;
  header.type = FrameType::kProbe;
  post(header, {});
}

bool OfiConnection::count_credits(const FrameHeader &header) {
  credits_ += header.credits;
  if (credits_ > kCredits) return false;
  if (header.type == FrameType::kCredit || header.type == FrameType::kProbe) return true;
  ++uncredited_;
  ++owed_;
  return uncredited_ <= kCredits;
}

void OfiConnection::on_frame(const Frame &frame) {
  if (!active()) return;
  if (dies_at_) dies_at_ = Deadline::in(kDrainTime);
  heard_ = true;
  if (frame.header.number != expected_frame_++)
    return break_with({Code::kIo, "frames were lost: the provider's connection broke", nessie::Scope::kPeer});
  if (!count_credits(frame.header))
    return break_with({Code::kBadMessage, "the peer sent more than its credits allow", nessie::Scope::kPeer});
  if (owed_ >= kCredits / 2 || !waiting_.empty()) transport_.peers().pump_later(*this);
  if (state_ == State::kOpen)
    handle(frame);
  else if (frame.header.type == FrameType::kBye)
    state_ = State::kClosed;
  if (state_ == State::kClosed) transport_.peers().attend(*this);
}

void OfiConnection::handle(const Frame &frame) {
  switch (frame.header.type) {
    case FrameType::kMessage:
      return transport_.events().message(*this, static_cast<MessageKind>(frame.header.operation), frame.body);
    case FrameType::kGet:
    case FrameType::kPut: return transport_.serve(*this, frame);
    case FrameType::kDone: return on_done(frame);
    case FrameType::kBye:
      return lose(Loss::kGone, lost_error("the peer closed the connection"), Fabric::Removal::kLater);
    case FrameType::kProbe: answers_probe_ = true; return transport_.peers().pump_later(*this);
    case FrameType::kCredit: return;
  }
}

// --- what we ask of the peer --------------------------------------------------------------------------------------------

void OfiConnection::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                        Completion &completion) {
  start(true, remote, offset, local, completion);
}

void OfiConnection::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                        Completion &completion) {
  start(false, remote, offset, {const_cast<std::byte *>(local.data()), local.size()}, completion);
}

void OfiConnection::start(bool get, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                          Completion &completion) {
  if (state_ != State::kOpen || breaking()) return completion.on_complete(lost_error("the peer is gone"));
  const auto needed = static_cast<std::uint32_t>(get ? Rights::kRemoteRead : Rights::kRemoteWrite);
  if (!(static_cast<std::uint32_t>(remote.rights) & needed))
    return completion.on_complete(refused_by_peer(Code::kRefused));
  if (offset > remote.size_bytes || local.size() > remote.size_bytes - offset)
    return completion.on_complete(refused_by_peer(Code::kOutOfRange));
  FrameHeader header;
  header.type = get ? FrameType::kGet : FrameType::kPut;
  header.operation = next_operation_++;
  header.key = remote.key;
  header.offset = offset;
  header.length = local.size();
  const bool small = local.size() <= kMaxInlineBytes;
  if (!small && lane_) return start_over_lane(header, remote, local, completion);
  Pending pending{&completion, local, get, {}};
  if (!small)
    if (auto status = expose(pending, header); !status.ok()) return completion.on_complete(status);
  pending_.emplace(header.operation, std::move(pending));
  send_or_keep(header, small && !get ? std::span<const std::byte>(local) : std::span<const std::byte>(), false);
}

/// Lets the peer reach our side of this one transfer, until it is complete.
Status OfiConnection::expose(Pending &pending, FrameHeader &header) {
  auto key = transport_.fabric().register_memory(pending.local, pending.get ? FI_REMOTE_WRITE : FI_REMOTE_READ);
  if (!key.ok()) return key.error();
  header.exposed = kExposed;
  header.rkey = fi_mr_key(key->mr.get());
  header.address = transport_.fabric().base_address(pending.local);
  pending.exposed = std::move(*key);
  return {};
}

void OfiConnection::on_done(const Frame &frame) {
  if (lane_ && lane_->transfers().answered(frame.header.operation, received_code(frame.header.result))) return;
  auto node = pending_.extract(frame.header.operation);
  if (node.empty()) return;
  Pending &pending = node.mapped();
  const Code code = received_code(frame.header.result);
  if (code != Code::kOk) {
    pending.exposed = {};
    return pending.completion->on_complete(refused_by_peer(code));
  }
  const bool inline_get = pending.get && pending.local.size() <= kMaxInlineBytes;
  if (inline_get && frame.body.size() != pending.local.size()) {
    pending_.insert(std::move(node));
    return break_with({Code::kBadMessage, "the peer's answer has the wrong size", nessie::Scope::kPeer});
  }
  if (inline_get && !frame.body.empty()) std::memcpy(pending.local.data(), frame.body.data(), frame.body.size());
  pending.exposed = {};
  pending.completion->on_complete({});
}

// --- the end --------------------------------------------------------------------------------------------------------

void OfiConnection::on_socket() {
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

void OfiConnection::break_with(Error error) {
  if (broken_ || !active()) return;
  broken_ = std::move(error);
  if (breached()) loss_ = Loss::kGone;
  if (!dies_at_) dies_at_ = Deadline::in(kDrainTime);  // the socket's end may tell that the process ended
  transport_.peers().attend(*this);
}

void OfiConnection::sever() {
  break_with({Code::kTimedOut, "the peer stopped in the middle of a transfer", nessie::Scope::kPeer});
  leave_fabric(Fabric::Removal::kNow);
}

void OfiConnection::settle(bool queue_is_empty) {
  if (state_ == State::kClosing && (broken_ || linger_->passed())) state_ = State::kClosed;
  if (state_ != State::kOpen) return;
  if (broken_ && !socket_ended_) on_socket();
  if (broken_ && (loss_ == Loss::kGone || dies_at_->passed()))
    return lose(loss_, breached() ? *broken_ : lost_error(broken_->message, broken_->cause), Fabric::Removal::kNow);
  // The provider's connection, which carries all between two endpoints, may be of use to the peer's next one already.
  if (!broken_ && dies_at_ && dies_at_->passed() && queue_is_empty)
    lose(loss_, lost_error(loss_ == Loss::kGone ? "the peer's process ended" : "the connection to the peer broke"),
         Fabric::Removal::kLater);
}

Deadline OfiConnection::timer() const {
  Deadline first = Deadline::never();
  if (dies_at_) first = first.earlier(*dies_at_);
  if (linger_) first = first.earlier(*linger_);
  return active() ? first : Deadline::never();
}

std::vector<Completion *> OfiConnection::take_pending() {
  std::vector<Completion *> completions;
  std::vector<std::uint64_t> order;
  for (const auto &[operation, pending] : pending_) order.push_back(operation);
  std::sort(order.begin(), order.end());
  for (const auto operation : order) completions.push_back(pending_[operation].completion);
  pending_.clear();
  if (lane_) std::ranges::copy(lane_->transfers().take_ours(), std::back_inserter(completions));
  return completions;
}

/// A transfer that we asked for may still write into, or read from, our memory.
bool OfiConnection::peer_reaches_us() const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [](const auto &entry) { return entry.second.exposed.mr != nullptr; });
}

void OfiConnection::leave_fabric(Fabric::Removal removal) {
  if (lane_) lane_->close();
  if (!std::exchange(on_fabric_, false)) return;
  transport_.fabric().remove_peer(name_, removal);
}

void OfiConnection::abandon(Code code, std::string_view why, Fabric::Removal removal) {
  if (peer_reaches_us()) removal = Fabric::Removal::kNow;
  waiting_.clear();
  transport_.peers().forget_socket(*this);
  leave_fabric(removal);
  transport_.drain_queue();
  transport_.peers().attend(*this);
  for (auto *completion : take_pending()) completion->on_complete(Error{code, std::string(why), nessie::Scope::kPeer});
}

void OfiConnection::reset_socket() {
  const linger at_once{1, 0};
  ::setsockopt(socket(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void OfiConnection::lose(Loss loss, const Error &error, Fabric::Removal removal) {
  state_ = State::kLost;
  if (loss == Loss::kBroken) reset_socket();
  abandon(Code::kPeerLost, error.message, removal);
  transport_.events().lost(*this, loss, error);
}

void OfiConnection::close() {
  if (state_ != State::kOpen) return;
  constexpr const char *kWhy = "the connection was closed";
  if (peer_reaches_us() || broken_ || dies_at_) {
    state_ = State::kClosed;
    return abandon(Code::kCancelled, kWhy, Fabric::Removal::kNow);
  }
  state_ = State::kClosing;
  linger_ = Deadline::in(kLingerTime);
  goodbye_ = true;
  std::erase_if(waiting_, [](const Waiting &frame) {
    return frame.header.type == FrameType::kGet || frame.header.type == FrameType::kPut;
  });
  auto completions = take_pending();
  // If the provider has everything, the socket's end is farewell enough, even if this process makes no more progress:
  // the peer reads on until nothing comes any more.
  if (waiting_.empty() && !(lane_ && lane_->has_unsent())) ::shutdown(socket(), SHUT_WR);
  transport_.peers().pump_later(*this);
  transport_.peers().attend(*this);
  pump();
  for (auto *completion : completions)
    completion->on_complete(Error{Code::kCancelled, kWhy, nessie::Scope::kOperation});
}

void OfiConnection::abort() {
  if (active()) {
    state_ = State::kClosed;
    reset_socket();
    abandon(Code::kCancelled, "the connection was closed", Fabric::Removal::kNow);
  }
  transport_.end_transfers(*this);
}

}  // namespace nnti::ofi
