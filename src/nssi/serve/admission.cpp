// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/serve/admission.hpp>

#include <algorithm>

namespace nssi {

namespace {

/// How long room is held free for who was invited.
constexpr std::chrono::milliseconds kInvitation{200};
constexpr std::chrono::milliseconds kFirstHint{10}, kShortestHint{1}, kLongestHint{10000};

inline bool within(std::uint64_t used, std::uint64_t more, std::uint64_t limit) {
  return limit == 0 || used == 0 || (more <= limit && used <= limit - more);
}

}  // namespace

Share &Caller::add_share(std::size_t service) {
  shares_.resize(service + 1);
  return shares_[service];
}

Share &Admission::share_of(Caller &caller) const { return caller.share(index_); }

inline bool Admission::fits_caller(const Share &share, std::uint64_t bytes) const {
  return within(share.requests, 1, in_force_->requests_of_caller) &&
         within(share.bytes, bytes, in_force_->bytes_of_caller);
}

/// What alone is larger than a limit is let in where there is nothing else.
inline bool Admission::fits(const Share &share, std::uint64_t bytes) const {
  return within(all_.requests, 1, in_force_->requests) && within(all_.bytes, bytes, in_force_->bytes) &&
         fits_caller(share, bytes);
}

void Admission::add(Share &share, std::uint64_t requests, std::uint64_t bytes) {
  all_.requests += requests;
  all_.bytes += bytes;
  share.requests += requests;
  share.bytes += bytes;
}

void Admission::take_away(Share &share, std::uint64_t requests, std::uint64_t bytes) {
  all_.requests -= requests;
  all_.bytes -= bytes;
  share.requests -= requests;
  share.bytes -= bytes;
}

void Admission::set_limits(const Limits &limits) {
  limits_ = limits;
  for (auto *waiting : waiting_) enqueue(*waiting);
}

void Admission::lift_limits() {
  static constexpr Limits kNone{0, 0, 0, 0};
  in_force_ = &kNone;
  for (auto *waiting : waiting_) enqueue(*waiting);
}

bool Admission::admit(Caller &caller, std::uint64_t id, std::uint64_t bytes, Charge &charge) {
  auto &share = share_of(caller);
  if (share.waiting) [[unlikely]] {
    const auto noted = take_invitation(caller, id);
    if (!noted) return false;
    add(share, 0, bytes - *noted);  // what comes may be of another size than what was turned away
  } else {
    if (!queue_.empty() || !fits(share, bytes)) return false;
    add(share, 1, bytes);
  }
  charge = Charge(*this, caller, 1, bytes, 0);
  return true;
}

/// For how many bytes there is room.
std::optional<std::uint64_t> Admission::take_invitation(Caller &caller, std::uint64_t id) {
  auto &share = share_of(caller);
  auto &waiting = *share.waiting;
  waiting.is_silent = false;
  const auto entry = waiting.find(id);
  if (entry == waiting.requests.end() || !waiting.is_invited(entry)) return std::nullopt;
  end_invitation(caller, id);
  --waiting.invited;
  --invited_;
  const auto bytes = entry->second.bytes;
  invited_bytes_ -= bytes;
  waiting.erase(entry);
  if (waiting.requests.empty()) drop(share);
  return bytes;
}

bool Admission::has_room_for_result(Caller &caller, std::uint64_t bytes) const {
  return within(all_.result_bytes, bytes, in_force_->bytes) &&
         within(share_of(caller).result_bytes, bytes, in_force_->bytes_of_caller);
}

Charge Admission::charge(Caller &caller, std::uint64_t bytes) {
  auto &share = share_of(caller);
  add(share, 1, bytes);
  all_.result_bytes += bytes;
  share.result_bytes += bytes;
  return {*this, caller, 1, bytes, bytes};
}

void Admission::release(Caller &caller, std::uint64_t requests, std::uint64_t bytes, std::uint64_t result_bytes) {
  auto &share = share_of(caller);
  take_away(share, requests, bytes);
  all_.result_bytes -= result_bytes;
  share.result_bytes -= result_bytes;
  finished_ += requests;
  if (share.waiting) enqueue(*share.waiting);
}

/// An older request of the same slot of calls is one that its caller does not want any more.
void Admission::turn_away(Caller &caller, PeerId from, std::uint64_t id, std::uint64_t bytes) {
  auto &share = share_of(caller);
  if (share.waiting)
    if (const auto old = share.waiting->of_slot(id); old != share.waiting->requests.end() && old->second.id != id)
      remove(share, old);
  if (!share.waiting) {
    share.waiting = std::make_unique<Waiting>();
    share.waiting->caller = &caller;
    waiting_.insert(share.waiting.get());
  }
  auto &waiting = *share.waiting;
  if (const auto entry = waiting.find(id); entry != waiting.requests.end())
    entry->second.peer = from;  // its caller has lost the connection before, which may not be known here yet
  else
    waiting.add({id, bytes, from});
  enqueue(waiting);
}

void Admission::enqueue(Waiting &waiting) {
  if (waiting.queued || waiting.is_silent || waiting.invited == waiting.requests.size()) return;
  waiting.queued = true;
  queue_.push_back(&waiting);
}

/// Who has as much in progress as a caller may is queued again when some of it has ended.
std::optional<PeerId> Admission::invite() {
  while (!queue_.empty()) {
    auto &waiting = *queue_.front();
    auto &share = share_of(*waiting.caller);
    const auto &[arrival, next] = *waiting.requests.upper_bound(waiting.last_invited);
    const bool has_own_room = fits_caller(share, next.bytes);
    if (has_own_room && !fits(share, next.bytes)) return std::nullopt;
    queue_.pop_front();
    waiting.queued = false;
    if (!has_own_room) continue;
    add(share, 1, next.bytes);
    ++invited_;
    invited_bytes_ += next.bytes;
    ++waiting.invited;
    waiting.last_invited = arrival;
    invitations_.push_back({nessie::Clock::now() + kInvitation, waiting.caller, next.id});
    enqueue(waiting);
    return next.peer;
  }
  return std::nullopt;
}

/// Looks from the front: mostly the oldest invitation is answered first.
void Admission::end_invitation(const Caller &caller, std::uint64_t id) {
  invitations_.erase(std::ranges::find_if(
      invitations_, [&](const Invitation &each) { return each.caller == &caller && each.id == id; }));
}

/// The room that was held free is free again.
void Admission::uninvite(Share &share, const Waiting::Entry &entry) {
  auto &waiting = *share.waiting;
  end_invitation(*waiting.caller, entry.id);
  --waiting.invited;
  --invited_;
  invited_bytes_ -= entry.bytes;
  take_away(share, 1, entry.bytes);
}

void Admission::uninvite_all(Share &share) {
  auto &waiting = *share.waiting;
  for (auto entry = waiting.requests.begin(); entry != waiting.requests.end() && waiting.is_invited(entry); ++entry)
    uninvite(share, entry->second);
  waiting.last_invited = 0;
}

void Admission::withdraw(Caller &caller, std::uint64_t id) {
  auto &share = share_of(caller);
  if (!share.waiting) return;
  share.waiting->is_silent = false;
  if (const auto entry = share.waiting->find(id); entry != share.waiting->requests.end()) remove(share, entry);
}

void Admission::remove(Share &share, Waiting::Requests::iterator entry) {
  auto &waiting = *share.waiting;
  if (waiting.is_invited(entry)) uninvite(share, entry->second);
  waiting.erase(entry);
  if (waiting.invited == waiting.requests.size() && std::exchange(waiting.queued, false)) std::erase(queue_, &waiting);
  if (waiting.requests.empty()) return drop(share);
  enqueue(waiting);  // there may be room for the next of them
}

void Admission::forget(Caller &caller, PeerId peer) {
  auto &share = share_of(caller);
  if (!share.waiting) return;
  std::vector<std::uint64_t> gone;
  for (const auto &[arrival, entry] : share.waiting->requests)
    if (entry.peer == peer) gone.push_back(entry.id);
  for (const auto id : gone) withdraw(caller, id);
}

void Admission::drop(Share &share) {
  if (share.waiting->queued) std::erase(queue_, share.waiting.get());
  waiting_.erase(share.waiting.get());
  share.waiting.reset();
}

void Admission::expire() {
  const auto now = nessie::Clock::now();
  while (!invitations_.empty() && invitations_.front().until <= now) {
    auto &share = share_of(*invitations_.front().caller);
    uninvite_all(share);
    share.waiting->is_silent = true;
    if (std::exchange(share.waiting->queued, false)) std::erase(queue_, share.waiting.get());
  }
}

nessie::Deadline Admission::next_expiry() const {
  return invitations_.empty() ? nessie::Deadline::never() : nessie::Deadline::at(invitations_.front().until);
}

std::chrono::milliseconds Admission::hint() {
  const auto now = nessie::Clock::now();
  const auto finished = finished_ - finished_before_;
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(now - counted_at_);
  if (time > std::chrono::seconds(1)) {
    finished_before_ = finished_;
    counted_at_ = now;
  }
  if (finished == 0) return kFirstHint;
  const auto ahead = static_cast<std::int64_t>(queue_.size()) + 1;
  return std::clamp(time * ahead / static_cast<std::int64_t>(finished), kShortestHint, kLongestHint);
}

}  // namespace nssi
