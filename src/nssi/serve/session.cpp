// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/serve/session.hpp>

#include <algorithm>

namespace nssi {

namespace {

/// What a caller may have in progress at once, so that forged ids do not take memory.
constexpr std::size_t kMostSlots = 1 << 16;
/// Answers up to this size are not worth a timer: they go with the next request of their slot.
constexpr std::size_t kSmallAnswerBytes = 256;
/// Of a caller that is gone, and can hardly come back any more: its small answers, together.
constexpr std::size_t kMostUnawaitedBytes = 16 << 10;
/// When a caller that is gone, and has requests that are being carried out, is looked at again.
constexpr std::chrono::seconds kSoon{1};

}  // namespace

Slot *Session::add_slot(std::size_t index) {
  if (index >= kMostSlots) return nullptr;
  const auto number = index / kPageSize;
  if (number >= pages_.size()) pages_.resize(number + 1);
  pages_[number] = std::make_unique<Page>();
  return slot_at(index);
}

std::optional<nessie::Nonce> Sessions::greet(PeerId peer, const wire::SessionId &id) {
  if (of(peer) != nullptr) return std::nullopt;
  auto &session = by_id_[id];
  if (!session) session = std::make_unique<Session>(id);
  auto &connection = by_peer_.put(peer, {session.get()});
  nessie::random_bytes(connection.challenge);
  ++session->connections;
  session->connection = peer;
  return connection.challenge;
}

bool Sessions::prove(PeerId peer, const wire::RoleProof &proof, const nessie::Credential &operators) {
  auto *connection = by_peer_.find(peer);
  if (connection == nullptr) return false;
  const auto role = wire::role_of_operator(proof.url);
  if (!operators.check(proof.proof, role, connection->session->id(), connection->challenge)) return false;
  connection->role = Role::kOperator;
  return true;
}

PeerId Sessions::connection_of(const Session &session) const {
  return by_peer_.find_if([&](const Connection &connection) { return connection.session == &session; });
}

void Sessions::lose(PeerId peer, Deadline awaited_until) {
  auto *session = of(peer);
  if (session == nullptr) return;
  by_peer_.erase(peer);
  session->awaited_until = awaited_until;
  const bool has_others = --session->connections != 0;
  if (session->connection == peer) session->connection = has_others ? connection_of(*session) : PeerId();
  if (!has_others) expire_session(*session);
}

void Sessions::keep(Session &session, Slot &slot) {
  if (!slot.long_result && slot.answer.size() <= kSmallAnswerBytes) return;
  slot.until = kept_until(slot);
  if (!slot.listed) list(session, slot);
}

void Sessions::list(Session &session, Slot &slot) {
  slot.listed = true;
  expiries_.emplace(slot.until.when(), Expiry{&session, Session::index_of(slot.id)});
}

void Sessions::expire() {
  while (!expiries_.empty() && expiries_.begin()->first <= Clock::now()) {
    const auto due = expiries_.begin()->second;
    expiries_.erase(expiries_.begin());
    if (due.slot) {
      expire_slot(*due.session, *due.slot);
      continue;
    }
    due.session->expiry.reset();
    if (due.session->connections == 0) expire_session(*due.session);
  }
}

void Sessions::expire_slot(Session &session, std::uint32_t index) {
  auto &slot = *session.slot_at(index);
  slot.listed = false;
  if (slot.until.is_never()) return;  // that of another request, or none yet
  if (!slot.until.passed()) return list(session, slot);
  slot.lose_answer();
}

/// Forgets the caller, unless an answer is kept for it, or on its way. What it can hardly come back for any more does
/// not take much memory.
void Sessions::expire_session(Session &session) {
  const auto now = Clock::now();
  const bool is_awaited = !session.awaited_until.passed();
  auto until = Clock::time_point::min(), look_again = Clock::time_point::max();
  if (session.has_requests()) until = look_again = now + kSoon;
  std::size_t answer_bytes = 0;
  session.for_each_slot([&](const Slot &slot) { answer_bytes += slot.answer.capacity(); });
  const bool is_much = answer_bytes > kMostUnawaitedBytes;
  session.for_each_slot([&](Slot &slot) {
    const bool takes_memory = slot.long_result || (is_much && !slot.answer.empty());
    if (takes_memory && !is_awaited) slot.lose_answer();
    if (takes_memory && is_awaited) look_again = std::min(look_again, session.awaited_until.when());
    if (!slot.has_answer()) return;
    if (slot.until.is_never()) slot.until = kept_until(slot);
    until = std::max(until, slot.until.when());
  });
  if (session.expiry) expiries_.erase(*session.expiry);
  session.expiry.reset();
  if (until > now) {
    session.expiry = expiries_.emplace(std::min(until, look_again), Expiry{&session, {}});
    return;
  }
  session.for_each_slot([](Slot &slot) { slot.forget_answer(); });
  std::erase_if(expiries_, [&](const auto &entry) { return entry.second.session == &session; });
  by_id_.erase(wire::SessionId(session.id()));
}

void Sessions::clear() {
  expiries_.clear();
  by_peer_.clear();
  by_id_.clear();
}

}  // namespace nssi
