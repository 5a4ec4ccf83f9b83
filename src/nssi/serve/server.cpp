// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/serve/server.hpp>

#include <fmt/format.h>

#include <base/log.hpp>
#include <base/url.hpp>
#include <nssi/drive/core.hpp>
#include <nssi/wire/coarse_clock.hpp>

#include <algorithm>

namespace nssi {

namespace {

/// Past the request's deadline: the caller's clock is another one, and it may be fetching a long result.
constexpr std::chrono::milliseconds kKeptLonger{500};

/// Than a caller tries to come back.
constexpr std::chrono::seconds kAwaitedLonger{1};

Error came_too_late() {
  return {
      Code::kPeerLost,
      "the call was carried out, but its result was not kept for as long as its caller was away; raise the service's "
      "nssi.reconnect, or nssi.keep_answers, if callers may be away for so long",
      nessie::Scope::kService};
}

Error is_finishing() {
  return {Code::kUnavailable, "the service is being stopped, and takes no more requests", nessie::Scope::kService};
}

Error is_for_operators(const Operation &operation) {
  return {Code::kRefused,
          fmt::format("{} is for operators: the caller has not proved to be one; it takes the service's "
                      "operator_credential, and the URL that the service itself gives",
                      operation.name)};
}

Error args_are_too_large(const wire::Request &request) {
  return {Code::kNoMemory, fmt::format("arguments of {} bytes are larger than the service's nssi.max_long; raise it if "
                                       "they are meant to be so large",
                                       request.long_args->remote.size_bytes)};
}

/// What it takes of the service's memory, with the result that it will probably have.
std::uint64_t size_of(const wire::Request &request, const Offered &offered) {
  return request.args_bytes() + (request.data_is_list ? request.data->remote.size_bytes : 0) +
         offered.result_size.usual();
}

/// Whether all of `url`, a list, leads to the one whose URLs are `own`. Somewhere else sits perhaps who passes on what
/// an operator says there.
bool leads_to(std::string_view own, std::string_view url) {
  const auto ours = nessie::Url::parse_list(own), theirs = nessie::Url::parse_list(url);
  if (!ours.ok() || !theirs.ok()) return false;
  return std::ranges::all_of(*theirs, [&](const auto &each) { return std::ranges::count(*ours, each) > 0; });
}

}  // namespace

void Server::on_hello(PeerId from, std::span<const std::byte> message) {
  const auto hello = xdr::decode<wire::Hello>(message);
  const auto challenge = hello.ok() ? sessions_.greet(from, hello->session) : std::nullopt;
  if (!challenge)
    return nessie::log::debug("a peer's hello was dropped: it cannot be decoded, or is not the first one");
  (void)core_.send_message(from, wire::Welcome{{wire::Kind::kWelcome, 0}, incarnation_, *challenge});
}

void Server::on_proof(PeerId from, std::span<const std::byte> message) {
  const auto proof = xdr::decode<wire::RoleProof>(message);
  if (!proof.ok()) return nessie::log::debug("a peer's proof was dropped: it cannot be decoded");
  const bool is_for_us = leads_to(core_.endpoint().url(), proof->url);
  if (is_for_us && core_.operators() && sessions_.prove(from, *proof, *core_.operators())) return;
  const auto now = Clock::now();
  if (now < next_warning_) return;  // who floods us with proofs does not flood the log
  next_warning_ = now + std::chrono::seconds(1);
  if (is_for_us)
    nessie::log::warning("a caller did not prove to be an operator: its operator_credential is not this service's");
  else
    nessie::log::warning(
        "a caller did not prove to be an operator of this service: it has connected to a URL that is not this "
        "service's, which is {}",
        core_.endpoint().url());
}

void Server::on_request(PeerId from, std::uint64_t id, std::span<const std::byte> message) {
  auto *session = sessions_.of(from);
  auto *slot = session != nullptr ? session->slot_of(id) : nullptr;
  if (slot == nullptr)
    return refuse(from, id,
                  {Code::kBadMessage, "the caller has not said who it is, or has too many calls in progress"});
  auto &incoming = next_free();
  auto &request = incoming.next();
  if (auto status = wire::decode_request(message, request); !status.ok()) return refuse(from, id, status.error());
  if (id < slot->id) return;  // its caller has gone on
  if (id == slot->id) return repeat(*slot, from, request);
  const Address address{request.interface, request.provider, request.op};
  const auto *offered = operations_.find(address);
  const bool may_call = offered != nullptr && sessions_.role_of(from) >= offered->operation.role;
  const bool is_too_large = request.long_args && request.long_args->remote.size_bytes > core_.max_long_bytes();
  const bool is_taken = may_call && !finishing_.load(std::memory_order_relaxed) && !is_too_large;
  if (is_taken && !offered->admission->admit(*session, id, size_of(request, *offered), incoming.charge()))
    return turn_away(from, *session, request, *offered);
  const auto now = coarse_now();
  const bool waits_for_ever = request.timeout_ms == wire::kNoTimeout;
  const auto waits = std::chrono::milliseconds(request.timeout_ms) + kKeptLonger;
  slot->renew(id, from, waits_for_ever ? Deadline::never() : Deadline::at(now + waits));
  if (offered == nullptr) {
    ++refused_;
    return (void)answers_.answer(*session, id, operations_.why_not(address));
  }
  if (!is_taken) offered->admission->withdraw(*session, id);
  if (!may_call) return (void)answers_.answer(*session, id, is_for_operators(offered->operation));
  if (is_too_large) return (void)answers_.answer(*session, id, args_are_too_large(request));
  if (!is_taken) return (void)answers_.answer(*session, id, is_finishing());
  core_.scheduler().disturb();
  take(incoming);
  slot->request = &incoming;
  incoming.accept(from, sessions_.role_of(from), *session, *offered, now);
  begin(incoming, *offered);
}

/// Asks the caller to send the request later. Its slot is left as it was: the request was never here.
void Server::turn_away(PeerId caller, Session &session, const wire::Request &request, const Offered &offered) {
  auto &admission = *offered.admission;
  if (offered.counters) ++offered.counters->turned_away;
  const auto retry_after = static_cast<std::uint32_t>(admission.hint().count());
  if (!request.does_not_wait) {
    admission.turn_away(session, caller, request.prefix.id, size_of(request, offered));
    has_waiting_ = true;
    core_.ask_for_turn();
  }
  (void)core_.send_message(caller, wire::Busy{{wire::Kind::kBusy, request.prefix.id}, retry_after});
}

void Server::invite() {
  if (answers_.has_awaiting()) answers_.give_room();
  if (!std::exchange(has_waiting_, false)) return;
  for (const auto &admission : operations_.admissions()) {
    const auto &service = admission->service();
    while (const auto peer = admission->invite())
      (void)core_.send_message(*peer, wire::Invited{{wire::Kind::kInvited, 0}, service.interface, service.provider});
    has_waiting_ |= admission->callers_waiting() != 0;
  }
  if (has_waiting_) core_.ask_for_turn();
}

void Server::refuse(PeerId caller, std::uint64_t id, const Error &error) {
  ++refused_;
  answers_.refuse(caller, id, error);
}

/// Refuses requests from now on. Callers that were turned away are invited, and hear it when they come.
void Server::finish() {
  refuse_from_now();
  for (const auto &admission : operations_.admissions()) admission->lift_limits();
}

void Server::begin_anew() {
  finishing_ = false;
  for (const auto &admission : operations_.admissions()) admission->restore_limits();
}

bool Server::is_idle() const {
  return active_.empty() &&
         std::ranges::all_of(operations_.admissions(), [](const auto &each) { return each->is_idle(); });
}

void Server::expire() {
  sessions_.expire();
  if (!has_waiting_) return;
  for (const auto &admission : operations_.admissions()) admission->expire();
}

Deadline Server::next_expiry() const {
  auto next = sessions_.next_expiry();
  if (has_waiting_)
    for (const auto &admission : operations_.admissions()) next = next.earlier(admission->next_expiry());
  return next;
}

void Server::carry_out(IncomingRequest &incoming) {
  if (incoming.prepare()) incoming.serve();
  put_back(incoming);
}

void Server::begin(IncomingRequest &incoming, const Offered &offered) {
  const auto &operation = offered.operation;
  if (incoming.runs_in_place()) return carry_out(incoming);
  incoming.keep_args();
  const auto work = [this, &incoming] { carry_out(incoming); };
  if (operation.arrival && !incoming.has_to_fetch()) do_guarded([&] { operation.arrival(incoming); });
  auto &scheduler = core_.scheduler();
  const bool may_exceed = !scheduler.can_start() && incoming.session().requests() <= scheduler.own_fibers();
  switch (operation.kind) {
    case HandlerKind::kBulk: return scheduler.spawn_last(work, incoming.caller());
    case HandlerKind::kBulkNow: scheduler.spawn_last(work, incoming.caller()); return scheduler.hasten_last();
    default: break;
  }
  if (offered.pool == nullptr) return scheduler.spawn(work, operation.priority, incoming.caller(), may_exceed);
  begin_in_pool(incoming, offered, may_exceed);
}

/// What did not fit the message is fetched here, by a fiber of the driver's.
void Server::begin_in_pool(IncomingRequest &incoming, const Offered &offered, bool may_exceed) {
  if (!incoming.has_to_fetch()) return submit(incoming, offered);
  core_.scheduler().spawn([this, &incoming, &offered] { submit(incoming, offered); }, offered.operation.priority,
                          incoming.caller(), may_exceed);
}

void Server::submit(IncomingRequest &incoming, const Offered &offered) {
  if (!incoming.prepare()) return put_back(incoming);
  auto work = [this, &incoming] {
    if (!incoming.is_too_late()) incoming.serve();
    core_.hand_over([this, &incoming] { put_back(incoming); });
  };
  offered.pool->submit(std::move(work), offered.operation.priority, incoming.caller());
}

/// The same request again: its caller has lost the connection, and with it perhaps the answer.
void Server::repeat(Slot &slot, PeerId from, const wire::Request &request) {
  slot.peer = from;
  const auto *offered = operations_.find({request.interface, request.provider, request.op});
  if (offered != nullptr && offered->counters) ++offered->counters->sent_again;
  if (slot.request != nullptr) slot.request->find_caller(from, request);  // it may have answered, and go on
  if (slot.long_result) return (void)answers_.offer_long_result(slot);
  if (!slot.answer.empty()) return (void)core_.send(from, slot.answer);
  if (slot.request == nullptr && !slot.is_fetched) refuse(from, slot.id, came_too_late());
}

IncomingRequest &Server::next_free() {
  if (free_.empty()) {
    requests_.push_back(std::make_unique<IncomingRequest>(core_, answers_, requests_.size()));
    free_.push_back(requests_.back().get());
  }
  return *free_.back();
}

void Server::take(IncomingRequest &next) {
  free_.pop_back();
  next.place = active_.size();
  active_.push_back(&next);
}

void Server::put_back(IncomingRequest &request) {
  request.count();
  active_.back()->place = request.place;
  active_[request.place] = active_.back();
  active_.pop_back();
  if (auto *slot = request.session().find(request.id()); slot != nullptr && slot->request == &request)
    slot->request = nullptr;
  request.forget();
  free_.push_back(&request);
}

Slot *Server::find(PeerId from, std::uint64_t id) const {
  auto *session = sessions_.of(from);
  return session != nullptr ? session->find(id) : nullptr;
}

void Server::on_cancel(PeerId from, std::uint64_t id) {
  auto *slot = find(from, id);
  if (slot != nullptr && slot->request != nullptr && !slot->request->cancel()) return;
  if (auto *session = sessions_.of(from); session != nullptr && has_waiting_)
    for (const auto &admission : operations_.admissions()) admission->withdraw(*session, id);
  (void)core_.send_message(from, wire::Prefix{wire::Kind::kCancelled, id});
}

void Server::forget_all() {
  for (auto *request : active_) request->forget();
  sessions_.clear();
}

void Server::on_peer_lost(PeerId peer) {
  for (auto *request : active_)
    if (request->caller() == peer) request->lose_caller();
  if (auto *session = sessions_.of(peer); session != nullptr && has_waiting_)
    for (const auto &admission : operations_.admissions()) admission->forget(*session, peer);
  sessions_.lose(peer, Deadline::in(core_.reconnect() + kAwaitedLonger));
}

void Server::on_result_fetched(PeerId from, std::uint64_t id) {
  auto *slot = find(from, id);
  if (slot == nullptr) return;
  slot->free_long_result();
  slot->is_fetched = true;
}

}  // namespace nssi
