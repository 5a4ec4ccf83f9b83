// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/channel/session.hpp"

#include <fmt/core.h>

namespace nnti::channel {
namespace {

using namespace std::chrono_literals;

constexpr auto kLingerTime = 5s;                   // for a peer to take what was sent before we closed
constexpr std::uint32_t kMostUnacknowledged = 64;  // messages
constexpr std::size_t kBurst = 32;                 // messages sent again at once
constexpr int kOvertakenBy = 3;                    // messages that arrived after one that did not: then it is lost

}  // namespace

Session::Session(Host &transport, const SessionId &id, std::optional<nessie::Url> url)
    : transport_(transport),
      id_(id),
      url_(std::move(url)),
      limits_(transport.settings().limits),
      window_(transport.buffers()),
      operations_(transport.time(), transport.settings().reconnect, transport.lossy()) {}

std::string Session::explain() const {
  auto text = link_ != nullptr ? link_->explain() : "the connection is broken and being restored: " + why_broken_;
  return text + (transport_.lossy() ? "; lost messages are sent again" : "") +
         "; a connection that breaks is made again";
}

Error Session::peer_lost(std::string message, int cause) const {
  return {Code::kPeerLost, std::move(message), nessie::Scope::kPeer, cause};
}

// --- sending ----------------------------------------------------------------------------------------------------------

bool Session::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (state_ != State::kOpen) return true;
  if (!link_is_up() || resending() || !window_.has_room(kHeaderBytes + message.size())) return false;
  return send_numbered(static_cast<std::uint8_t>(kind), message);
}

/// False: the link has no credits.
bool Session::send_numbered(std::uint8_t type, std::span<const std::byte> payload) {
  auto buffer = transport_.buffers().take();
  HeaderBytes header;
  encode_header({type, window_.next(), expected_}, header);
  buffer.insert(buffer.end(), header.begin(), header.end());
  buffer.insert(buffer.end(), payload.begin(), payload.end());
  if (!link_->try_send(MessageKind::kUser, buffer)) {
    transport_.buffers().give_back(std::move(buffer));
    return false;
  }
  auto &kept = window_.push(std::move(buffer));
  resend_next_ = window_.next();
  sent_acknowledgement();
  if (!transport_.lossy()) return true;
  kept.sent = transport_.now();
  if (retransmit_ == kNever) {
    retransmit_ = kept.sent + round_trip_.timeout();
    transport_.tick_at(retransmit_);
  }
  return true;
}

bool Session::send_control(Type type, std::span<const std::byte> body) {
  std::array<std::byte, kMinMessageBytes> message;
  encode_header({static_cast<std::uint8_t>(type), window_.next(), expected_}, std::span(message).first<kHeaderBytes>());
  std::ranges::copy(body, message.begin() + kHeaderBytes);
  return link_->try_send(MessageKind::kUser, std::span(message).first(kHeaderBytes + body.size()));
}

void Session::sent_acknowledgement() {
  unacknowledged_ = unacknowledged_bytes_ = 0;
  acknowledge_ = acknowledge_ && !early_.empty();  // gaps are told by a message of their own
}

/// Sends a message that was sent before.
void Session::send_again(std::uint64_t number, Time now) {
  auto &kept = window_[number];
  encode_header({static_cast<std::uint8_t>(kept.bytes[0]), number, expected_},
                std::span(kept.bytes).first<kHeaderBytes>());
  if (!link_->try_send(MessageKind::kUser, kept.bytes)) return;
  kept.sent = now;
  kept.again = true;
  sent_acknowledgement();
}

/// After a resumption: what the peer lacks.
void Session::resend_rest() {
  const auto now = transport_.lossy() ? transport_.now() : Time();
  for (; link_is_up() && resending(); ++resend_next_) {
    auto &kept = window_[resend_next_];
    if (kept.arrived) continue;
    encode_header({static_cast<std::uint8_t>(kept.bytes[0]), resend_next_, expected_},
                  std::span(kept.bytes).first<kHeaderBytes>());
    if (!link_->try_send(MessageKind::kUser, kept.bytes)) return;
    kept.sent = now;
    kept.again = true;
    sent_acknowledgement();
  }
}

/// Over lossy links: the timer has run out.
void Session::send_overdue(Time now) {
  const auto timeout = round_trip_.timeout();
  round_trip_.back_off();
  std::size_t left = kBurst;
  for (auto number = window_.first(); number < resend_next_ && left != 0; ++number) {
    auto &kept = window_[number];
    if (kept.arrived || now - kept.sent < timeout) continue;
    send_again(number, now);
    --left;
  }
  retransmit_ = now + round_trip_.timeout();
}

// --- receiving --------------------------------------------------------------------------------------------------------

void Session::on_message(std::span<const std::byte> message) {
  const auto header = decode_header(message);
  if (!header) return violated("what is no message");
  if (transport_.lossy()) {
    heard_ = transport_.now();
    excused_ = false;
  }
  const auto body = message.subspan(kHeaderBytes);
  if (header->type == static_cast<std::uint8_t>(Type::kOpened)) return on_opened(*header, body);
  if (header->type == static_cast<std::uint8_t>(Type::kOpen)) return on_opening_again(body);
  if (header->type == static_cast<std::uint8_t>(Type::kUnknown))
    return lose(
        peer_lost("the peer does not know this session any more: it gave it up, or another process is at "
                  "its address"));
  if (greeting_) return transport_.lossy() ? void() : violated("something before its answer");
  if (!acknowledge(header->acknowledged)) return violated("an acknowledgement of what was never sent");
  if (header->numbered()) return on_numbered(*header, body);
  on_control(*header, body);
}

void Session::on_control(const Header &header, std::span<const std::byte> body) {
  switch (static_cast<Type>(header.type)) {
    case Type::kAcknowledge:
      if (body.size() > kMaxBitmapBytes) return violated("an acknowledgement that is too long");
      return on_bitmap(header.acknowledged, body);
    case Type::kPing: (void)send_control(Type::kPong); return;
    case Type::kPong: return;
    default: return violated("a message of an unknown type");
  }
}

void Session::on_numbered(const Header &header, std::span<const std::byte> payload) {
  if (header.number == expected_ && handed_over_) [[likely]] {
    accept(header.type, payload);
    if (!early_.empty()) accept_early();
    return;
  }
  if (transport_.lossy()) acknowledge_soon();
  if (header.number < expected_) return;  // again
  if (handed_over_ && early_.empty() && !transport_.lossy()) return violated("messages with a gap");
  const bool kept =
      header.number - expected_ <= limits_.messages && early_.add(header.number, header.type, payload, limits_);
  if (!kept && !transport_.lossy()) violated("more than was agreed");
}

/// Delivers the next message. The endpoint may do anything meanwhile.
void Session::accept(std::uint8_t type, std::span<const std::byte> payload) {
  ++expected_;
  ++unacknowledged_;
  unacknowledged_bytes_ += static_cast<std::uint32_t>(kHeaderBytes + payload.size());
  if (transport_.lossy() || unacknowledged_ >= std::min(kMostUnacknowledged, (limits_.messages + 3) / 4) ||
      unacknowledged_bytes_ >= limits_.bytes / 4)
    acknowledge_soon();
  if (type == static_cast<std::uint8_t>(Type::kClose)) {
    if (transport_.lossy() && link_is_up()) (void)send_control(Type::kAcknowledge);
    return lose(peer_lost("the peer closed the connection"));
  }
  if (state_ == State::kOpen) transport_.events().message(*this, static_cast<MessageKind>(type), payload);
}

void Session::accept_early() {
  while (state_ != State::kOver) {
    auto early = early_.take(expected_);
    if (!early) return;
    transport_.happened();
    accept(early->type, early->payload);
  }
}

/// False: `number` lies in the future.
bool Session::acknowledge(std::uint64_t number) {
  if (number > window_.next()) return false;
  if (number <= window_.first()) return true;
  if (transport_.lossy()) {
    const auto &newest = window_[number - 1];
    if (!newest.again) round_trip_.sample(heard_ - newest.sent);
    round_trip_.reset_back_off();
    retransmit_ = number == window_.next() ? kNever : heard_ + round_trip_.timeout();
    if (retransmit_ != kNever) transport_.tick_at(retransmit_);
  }
  window_.acknowledge(number);
  resend_next_ = std::max(resend_next_, number);
  if (state_ == State::kClosing) ask_attention();
  return true;
}

/// What several later messages have overtaken is lost. Bit 0 is message `acknowledged` + 1.
void Session::on_bitmap(std::uint64_t acknowledged, std::span<const std::byte> bits) {
  int overtaken_by = 0;
  for (auto place = 8 * bits.size() + 1; place-- > 0;) {
    const auto number = acknowledged + place;
    const auto bit = place - 1;
    const bool arrived = place > 0 && std::to_integer<unsigned>(bits[bit / 8] >> (bit % 8)) % 2 != 0;
    if (arrived) ++overtaken_by;
    if (number < window_.first() || number >= resend_next_) continue;
    auto &kept = window_[number];
    kept.arrived |= arrived;
    if (!kept.arrived && overtaken_by >= kOvertakenBy && heard_ - kept.sent >= round_trip_.smoothed())
      send_again(number, heard_);
  }
}

void Session::acknowledge_soon() {
  acknowledge_ = true;
  ask_attention();
}

// --- get and put ------------------------------------------------------------------------------------------------------

void Session::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                  Completion &completion) {
  if (state_ != State::kOpen) return completion.on_complete(peer_lost("the peer is gone"));
  operations_.start({true, remote, offset, local.data(), local.size(), &completion}, link_for_operations());
  if (operations_.any_waiting()) transport_.tick_at(operations_.restart_time());
}

void Session::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                  Completion &completion) {
  if (state_ != State::kOpen) return completion.on_complete(peer_lost("the peer is gone"));
  auto *bytes = const_cast<std::byte *>(local.data());
  operations_.start({false, remote, offset, bytes, local.size(), &completion}, link_for_operations());
  if (operations_.any_waiting()) transport_.tick_at(operations_.restart_time());
}

// --- the end ----------------------------------------------------------------------------------------------------------

void Session::close() {
  closed_ = true;
  if (state_ == State::kOver || state_ == State::kClosing) return;
  const Host::NoReaping stays(transport_);
  state_ = State::kClosing;
  goodbye_ = true;
  linger_ = after(transport_.now(), kLingerTime);
  transport_.tick_at(linger_);
  operations_.end({Code::kCancelled, "the connection was closed"});
  say_goodbye();
  if (operations_.any_under_way()) finish();  // only the link's end ends them
  if (state_ != State::kOver) ask_attention();
}

/// Over a link that loses nothing, what was sent arrives; else its acknowledgement is waited for.
void Session::say_goodbye() {
  if (state_ != State::kClosing || !link_is_up() || resending()) return;
  if (goodbye_) goodbye_ = !send_numbered(static_cast<std::uint8_t>(Type::kClose), {});
  if (!goodbye_ && (!transport_.lossy() || window_.empty())) finish();
}

/// A completion of the link's may reap this session.
void Session::finish() {
  state_ = State::kOver;
  transport_.reap_later();
  if (auto *link = leave_link()) link->close();
}

void Session::give_up() {
  if (state_ == State::kOpening) finish();
  awaited = false;
  transport_.reap_later();
}

void Session::violated(std::string_view what) {
  lose({Code::kBadMessage, fmt::format("the peer's channel sent {}; run the same Nessie on both sides", what),
        nessie::Scope::kPeer});
}

/// For good. All operations complete before the endpoint is told.
void Session::lose(Error error) {
  if (state_ == State::kOver) return;
  if (state_ == State::kClosing) return finish();
  const bool tell = state_ == State::kOpen;
  failure_ = error;
  state_ = State::kOver;
  transport_.reap_later();
  transport_.happened();
  // The link first: a completion may make progress, in which a link that ends by itself goes.
  if (auto *link = leave_link()) link->close();
  operations_.end(peer_lost(error.message, error.cause));
  if (tell && !closed_) transport_.events().lost(*this, Loss::kGone, error);
}

}  // namespace nnti::channel
