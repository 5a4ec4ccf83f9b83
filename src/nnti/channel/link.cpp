// SPDX-License-Identifier: BSD-3-Clause
// A session's links: made, broken, made again; and everything that happens because time passes.
#include "nnti/channel/session.hpp"

#include <fmt/core.h>
#include <base/log.hpp>

#include <cerrno>

namespace nnti::channel {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstBackOff = 10ms, kLongestBackOff = 1s;   // between attempts to connect
constexpr Duration kFirstPatience = 1s, kLongestPatience = 10s;  // with an attempt
constexpr Duration kCreditWait = 1ms;
constexpr Duration kGrace = 1s;

/// Whether connecting to the same address again could help.
bool may_come_back(const Error &error) {
  switch (error.code) {
    case Code::kRefused:
    case Code::kUnsupported:
    case Code::kInvalidArgument:
    case Code::kBadMessage: return false;
    default: return error.cause != ECONNREFUSED;
  }
}

std::string seconds(Duration duration) {
  return fmt::format("{:g} s", std::chrono::duration<double>(duration).count());
}

}  // namespace

void Session::attach(Connection &link) {
  link_ = &link;
  transport_.bind(link, *this);
  max_message_bytes_ = link.max_message_bytes() - kHeaderBytes;
  heard_ = asked_ = transport_.now();
  transport_.tick_at(next_tick());
}

Connection *Session::leave_link() {
  connecting_.reset();
  attempt_ends_ = next_attempt_ = greet_ = retransmit_ = kNever;
  greeting_ = answer_due_ = false;
  auto *link = std::exchange(link_, nullptr);
  if (link != nullptr) transport_.unbind(*link);
  return link;
}

// --- connecting -------------------------------------------------------------------------------------------------------

Status Session::open(Deadline deadline) {
  auto connecting = transport_.inner().connect(*url_, deadline);
  if (!connecting.ok()) return connecting.error();
  connecting_ = std::move(*connecting);
  attempt_ = 1;
  ask_attention();
  return {};
}

void Session::hand_over() {
  handed_over_ = true;
  state_ = State::kOpen;
  if (!early_.empty()) transport_.hurry();
  ask_attention();
}

void Session::connect_again(Time now) {
  next_attempt_ = kNever;
  ++attempt_;
  attempt_ends_ = after(now, patience_);
  auto connecting = transport_.inner().connect(*url_, Deadline::at(attempt_ends_));
  if (!connecting.ok()) return attempt_failed(connecting.error());
  connecting_ = std::move(*connecting);
  ask_attention();
}

void Session::advance_attempt() {
  auto outcome = connecting_->advance();
  if (!outcome) return;
  connecting_.reset();
  if (!outcome->ok()) return attempt_failed(outcome->error());
  attach(***outcome);
  greeting_ = true;
  round_trip_.reset_back_off();
  greet(transport_.now());
}

void Session::attempt_failed(const Error &error) {
  connecting_.reset();
  attempt_ends_ = kNever;
  if (attempt_ == 1) return lose(error);
  if (!may_come_back(error))
    return lose(peer_lost("the connection broke, and cannot be made again: " + error.message, error.cause));
  next_attempt_ = after(transport_.now(), back_off_);
  back_off_ = std::min(2 * back_off_, kLongestBackOff);
  transport_.tick_at(next_attempt_);
}

/// Says, on a new link, whose it is. Over a lossy one until the peer answers.
void Session::greet(Time now) {
  const auto body = encode_opening({opened_, attempt_, id_, transport_.settings().limits});
  const bool sent = send_control(Type::kOpen, body);
  greet_ = kNever;
  if (transport_.lossy()) greet_ = after(now, round_trip_.timeout());
  round_trip_.back_off();
  if (!sent) greet_ = after(now, kCreditWait);
  transport_.tick_at(greet_);
}

void Session::on_opened(const Header &header, std::span<const std::byte> body) {
  if (!greeting_) return transport_.lossy() || !we_connect() ? void() : violated("a second answer");
  auto opened = decode_opened(body);
  if (!opened.ok()) return lose(opened.error());
  if (opened->attempt != attempt_) return violated("an answer to another question");
  greeting_ = false;
  become_up(opened->limits, header.acknowledged);
}

/// Over a lossy link: the peer has not heard our answer yet.
void Session::on_opening_again(std::span<const std::byte> body) {
  const auto opening = decode_opening(body);
  const bool same = opening.ok() && opening->session == id_ && opening->attempt == attempt_;
  if (we_connect() || !transport_.lossy() || !same) return violated("an opening out of turn");
  answer_due_ = true;
  ask_attention();
}

// --- resuming ---------------------------------------------------------------------------------------------------------

/// The old link's transfers end before the answer leaves: the peer begins its own again when it has that.
void Session::resume(Connection &link, const Opening &opening, std::uint64_t acknowledged) {
  if (auto *old = leave_link()) old->abort();
  if (state_ == State::kOver) return link.close();  // a completion's doing
  attach(link);
  attempt_ = opening.attempt;
  answer_due_ = true;
  become_up(opening.limits, acknowledged);
  answer_opening();
}

void Session::answer_opening() {
  if (link_ == nullptr || !answer_due_) return;
  answer_due_ = !send_control(Type::kOpened, encode_opened({attempt_, transport_.settings().limits}));
  if (!answer_due_) operations_.on_new_link();
}

void Session::become_up(const Limits &limits, std::uint64_t acknowledged) {
  if (acknowledged < window_.first() || acknowledged > window_.next())
    return violated("a count of messages that cannot be");
  limits_ = transport_.settings().limits.smaller(limits);
  window_.limit(limits_);
  window_.acknowledge(acknowledged);
  resend_next_ = acknowledged;
  if (opened_)
    nessie::log::info("nnti: the connection to a peer was made again; {} messages are resent", window_.size());
  opened_ = true;
  gives_up_ = next_attempt_ = attempt_ends_ = greet_ = kNever;
  grace_given_ = false;
  round_trip_.reset_back_off();
  if (transport_.lossy() && !window_.empty()) retransmit_ = after(transport_.now(), round_trip_.timeout());
  operations_.on_new_link();
  transport_.tick_at(next_tick());
  ask_attention();
}

// --- breaking ---------------------------------------------------------------------------------------------------------

void Session::on_link_lost(Loss loss, const Error &error) {
  (void)leave_link();
  if (loss == Loss::kGone) return lose(error);
  broke(error);
}

void Session::broke(const Error &error) {
  if (state_ == State::kClosing && window_.empty() && !goodbye_) return finish();
  const auto &limit = transport_.settings().reconnect;
  if (limit.count() == 0) return lose(peer_lost("the connection broke: " + error.message, error.cause));
  nessie::log::info("nnti: the connection to a peer broke: {}", error.message);
  why_broken_ = error.message;
  const auto now = transport_.now();
  if (gives_up_ == kNever) {
    gives_up_ = after(now, limit);
    back_off_ = kFirstBackOff;
    patience_ = kFirstPatience;
  }
  if (we_connect()) {
    next_attempt_ = after(now, attempt_ == 1 ? Duration(0) : back_off_);
    back_off_ = std::min(2 * back_off_, kLongestBackOff);
  }
  transport_.tick_at(next_tick());
}

// --- time -------------------------------------------------------------------------------------------------------------

/// What the transport has to do now and could not do from within a callback.
bool Session::attend() {
  if (connecting_) advance_attempt();
  if (handed_over_ && !early_.empty()) accept_early();
  answer_opening();
  if (link_is_up()) {
    resend_rest();
    say_goodbye();
    if (acknowledge_ && link_is_up() && send_control(Type::kAcknowledge, early_.bitmap(expected_))) {
      acknowledge_ = false;
      unacknowledged_ = unacknowledged_bytes_ = 0;
    }
    if (operations_.any_waiting() && operations_.restart_time() <= transport_.now())
      operations_.restart([this] { return link_for_operations(); });
  }
  if (operations_.any_waiting()) transport_.tick_at(operations_.restart_time());
  return connecting_ || answer_due_ || (link_is_up() && (resending() || goodbye_ || acknowledge_));
}

void Session::tick(Time now) {
  if (state_ == State::kOver) return;
  if (now >= linger_) return finish();
  if (link_is_up()) {
    if (now >= retransmit_) send_overdue(now);
    if (operations_.any_waiting()) ask_attention();
  } else {
    watch_the_clock_while_broken(now);
  }
  if (link_ != nullptr && transport_.lossy()) watch_the_peer(now);
}

void Session::watch_the_clock_while_broken(Time now) {
  if (now >= gives_up_ && transport_.was_away() && !std::exchange(grace_given_, true))
    gives_up_ = after(now, kGrace);  // what came meanwhile is looked at first
  if (now >= gives_up_) {
    const auto limit = seconds(transport_.settings().reconnect);
    return lose(peer_lost(
        fmt::format("the connection could not be restored within {} (nnti.reconnect): {}", limit, why_broken_)));
  }
  if (now >= attempt_ends_) {
    patience_ = std::min(2 * patience_, kLongestPatience);
    if (auto *link = leave_link()) link->abort();
    attempt_failed({Code::kTimedOut, "the peer did not answer in time", nessie::Scope::kPeer});
  }
  if (now >= next_attempt_) connect_again(now);
  if (now >= greet_) greet(now);
}

/// Over lossy links only: elsewhere the kernel watches, even while the peer computes and answers nothing.
void Session::watch_the_peer(Time now) {
  const auto &settings = transport_.settings();
  if (settings.heartbeat.count() == 0) return;
  if (settings.peer_timeout.count() != 0 && now >= after(heard_, settings.peer_timeout) && !excused(now))
    return lose(
        peer_lost(fmt::format("the peer has not answered for {} (nnti.peer_timeout)", seconds(settings.peer_timeout))));
  if (greeting_ || now < after(std::max(heard_, asked_), settings.heartbeat)) return;
  asked_ = now;
  (void)send_control(Type::kPing);
}

/// We did not listen ourselves, as in a process that was stopped: the peer has a moment to be heard.
bool Session::excused(Time now) {
  if (!transport_.was_away() || std::exchange(excused_, true)) return false;
  const auto &timeout = transport_.settings().peer_timeout;
  heard_ = now - timeout + std::min<Duration>(kGrace, timeout);
  return true;
}

Time Session::next_tick_while_broken() const { return std::min({gives_up_, next_attempt_, attempt_ends_, greet_}); }

Time Session::next_tick() const {
  if (state_ == State::kOver) return kNever;
  Time first = linger_;
  first = std::min(first, link_is_up() ? std::min(retransmit_, operations_.restart_time()) : next_tick_while_broken());
  const auto &settings = transport_.settings();
  if (link_ == nullptr || !transport_.lossy() || settings.heartbeat.count() == 0) return first;
  if (settings.peer_timeout.count() != 0) first = std::min(first, after(heard_, settings.peer_timeout));
  return greeting_ ? first : std::min(first, after(std::max(heard_, asked_), settings.heartbeat));
}

}  // namespace nnti::channel
