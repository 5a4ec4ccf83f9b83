// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/faulty/connection.hpp"

#include <algorithm>

namespace nnti::faulty {
namespace {

constexpr std::uint64_t kMostTurnsOvertaken = 64;  // nothing may come later that overtakes
constexpr std::uint64_t kMostOvertakers = 4;
constexpr std::size_t kMostHeld = 4096;

Error lost_error(std::string message) { return {Code::kPeerLost, std::move(message), nessie::Scope::kPeer}; }
Error transient_error() { return {Code::kIo, "faulty: the transfer failed for a while"}; }

}  // namespace

std::string FaultyConnection::explain() const {
  return "through a network with faults at will (nnti.faulty.*): " + (inner_ ? inner_->explain() : "broken");
}

// --- dice -------------------------------------------------------------------------------------------------------------

/// Before every call that sends: whether the connection breaks, or falls silent.
void FaultyConnection::roll() {
  const auto &faults = transport_.faults();
  auto &dice = transport_.dice();
  if (state_ == State::kOpen && dice.chance(faults.breaks.probability)) state_ = State::kBreaking;
  if (!silent_until_ && dice.chance(faults.silent.probability))
    silent_until_ = dice.within(faults.silent.extent, transport_.moment());
}

bool FaultyConnection::silent() const { return silent_until_ && !silent_until_->reached(transport_.moment()); }

std::optional<FaultyConnection::Wait> FaultyConnection::roll_wait() {
  const auto &faults = transport_.faults();
  auto &dice = transport_.dice();
  if (dice.chance(faults.delay.probability)) return Wait{dice.within(faults.delay.extent, transport_.moment()), 0};
  if (!dice.chance(faults.reorder.probability)) return std::nullopt;
  Moment at_last = transport_.moment();
  at_last.turn += kMostTurnsOvertaken;
  return Wait{at_last, static_cast<unsigned>(1 + dice.below(kMostOvertakers))};
}

// --- messages ---------------------------------------------------------------------------------------------------------

bool FaultyConnection::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (state_ != State::kOpen) return true;
  roll();
  auto &dice = transport_.dice();
  if (state_ != State::kOpen || silent() || dice.chance(transport_.faults().loss.probability)) return true;
  const bool twice = dice.chance(transport_.faults().duplicate.probability);
  if (const auto wait = roll_wait())
    hold(kind, message, *wait);
  else if (!inner_->try_send(kind, message))
    return false;
  for (auto &held : messages_) held.wait.overtaken();
  if (twice) hold(kind, message, Wait{dice.within({8, {}, false}, transport_.moment()), 0});
  return true;
}

void FaultyConnection::hold(MessageKind kind, std::span<const std::byte> message, const Wait &wait) {
  if (messages_.size() < kMostHeld) messages_.push_back({kind, {message.begin(), message.end()}, wait});
}

std::size_t FaultyConnection::release_messages() {
  const auto now = transport_.moment();
  std::size_t released = 0;
  for (auto held = messages_.begin(); held != messages_.end();) {
    const bool due = held->wait.until.reached(now);
    if (due && !inner_->try_send(held->kind, held->bytes)) return released;
    held = due ? messages_.erase(held) : held + 1;
    released += due;
  }
  return released;
}

bool FaultyConnection::lets_through(MessageKind kind) {
  if (kind != kLetGo) return state_ == State::kOpen && !silent();
  if (state_ == State::kOver) return false;
  inner_->abort();
  inner_ = nullptr;
  on_inner_lost(Loss::kBroken, lost_error("faulty: the connection broke"));
  return false;
}

// --- get and put --------------------------------------------------------------------------------------------------------

template <class Begin> void FaultyConnection::start(Completion &completion, Begin begin) {
  if (state_ != State::kOpen) return completion.on_complete(lost_error("faulty: the connection is broken"));
  roll();
  auto &dice = transport_.dice();
  auto &operation = operations_.emplace_back(*this, completion);
  operation.place = std::prev(operations_.end());
  operation.wait = roll_wait();
  const bool fails = dice.chance(transport_.faults().transient.probability);
  operation.fails = fails && dice.chance(0.5);
  if (state_ != State::kOpen || silent() || (fails && !operation.fails))
    return on_operation(operation, transient_error());
  operation.under_way = true;
  begin(operation);
}

void FaultyConnection::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                           Completion &completion) {
  start(completion, [&](Completion &ours) { inner_->get(remote, offset, local, ours); });
}

void FaultyConnection::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                           Completion &completion) {
  start(completion, [&](Completion &ours) { inner_->put(remote, offset, local, ours); });
}

/// The inner connection is done with it, or never saw it.
void FaultyConnection::on_operation(Operation &operation, Status status) {
  operation.under_way = false;
  if (operation.fails && status.ok()) status = transient_error();
  if (state_ == State::kOver || state_ == State::kEnding) return complete(operation, error_);
  if (operation.wait || silent() || state_ == State::kBreaking) {
    operation.result = std::move(status);
    return;
  }
  for (auto &other : operations_)
    if (other.wait) other.wait->overtaken();
  complete(operation, std::move(status));
}

void FaultyConnection::complete(Operation &operation, Status status) {
  auto &completion = operation.completion;
  operations_.erase(operation.place);
  completion.on_complete(std::move(status));
}

/// One after the other, from the beginning each time: a completion may do anything.
std::size_t FaultyConnection::release_completions() {
  for (std::size_t released = 0;; ++released) {
    const auto now = transport_.moment();
    const auto due = [&](const Operation &operation) {
      return operation.result && (!operation.wait || operation.wait->until.reached(now));
    };
    const auto found = state_ == State::kOpen && !silent() ? std::ranges::find_if(operations_, due) : operations_.end();
    if (found == operations_.end()) return released;
    complete(*found, std::move(*found->result));
  }
}

// --- the end ----------------------------------------------------------------------------------------------------------

void FaultyConnection::complete_all(const Error &error) {
  while (!operations_.empty()) complete(operations_.front(), error);
}

/// The inner connection is no more. What it means is told when the peer is not silent.
void FaultyConnection::on_inner_lost(Loss loss, const Error &error) {
  inner_ = nullptr;
  if (state_ == State::kOver) return;
  loss_ = state_ == State::kBreaking ? Loss::kBroken : loss;
  error_ = {Code::kPeerLost, error.message, nessie::Scope::kPeer, error.cause};
  state_ = State::kEnding;
}

void FaultyConnection::lose(Loss loss, const Error &error) {
  complete_all(error);
  if (state_ == State::kOver) return;  // closed by a completion
  state_ = State::kOver;
  if (loss == Loss::kBroken) transport_.begin_outage();
  transport_.events().lost(*this, loss, error);
}

void FaultyConnection::end(void (Connection::*how)()) {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  error_ = {Code::kCancelled, "the connection was closed"};
  if (auto *inner = std::exchange(inner_, nullptr)) (inner->*how)();
  complete_all(error_);
}

/// Not every inner transport tells an end from a break: the peer is told here.
void FaultyConnection::abort() {
  if (state_ == State::kOpen && !silent()) (void)inner_->try_send(kLetGo, {});
  end(&Connection::abort);
}

void FaultyConnection::die() {
  state_ = State::kBreaking;
  told_peer_ = true;
  silent_until_ = Moment{0, Time::min(), true};
  inner_ = nullptr;
}

std::size_t FaultyConnection::turn() {
  if (state_ == State::kOver || silent()) return 0;
  if (state_ == State::kEnding) {
    lose(loss_, error_);
    return 1;
  }
  if (state_ == State::kBreaking) {
    messages_.clear();
    if (!told_peer_) told_peer_ = inner_->try_send(kLetGo, {});
    return 0;
  }
  if (silent_until_) silent_until_.reset();
  const auto released = messages_.empty() ? 0 : release_messages();
  return released + release_completions();
}

Time FaultyConnection::next_turn() const {
  if (silent()) return silent_until_->never ? Time::max() : std::max(silent_until_->time, transport_.soon());
  const bool waits =
      !messages_.empty() || state_ == State::kEnding || (state_ == State::kBreaking && !told_peer_) ||
      std::ranges::any_of(operations_, [](const auto &operation) { return operation.result.has_value(); });
  return waits ? transport_.soon() : Time::max();
}

}  // namespace nnti::faulty
