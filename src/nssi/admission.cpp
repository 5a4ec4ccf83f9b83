// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/admission.hpp>

#include <nssi/session.hpp>

#include <algorithm>

namespace nssi {

namespace {

/// How long room is held free for who was invited.
constexpr std::chrono::milliseconds kInvitation{200};
constexpr std::chrono::milliseconds kFirstHint{10}, kShortestHint{1}, kLongestHint{10000};

bool within(std::uint64_t used, std::uint64_t more, std::uint64_t limit) {
  return limit == 0 || used == 0 || (more <= limit && used <= limit - more);
}

auto find(Waiting &waiting, std::uint64_t id) { return std::ranges::find(waiting.requests, id, &Waiting::Entry::id); }

}  // namespace

Share &Admission::share_of(Session &session) const { return session.share(index_); }

bool Admission::fits_caller(const Share &share, std::uint64_t bytes) const {
  return within(share.requests, 1, limits_.requests_of_caller) && within(share.bytes, bytes, limits_.bytes_of_caller);
}

/// What alone is larger than a limit is let in where there is nothing else.
bool Admission::fits(const Share &share, std::uint64_t bytes) const {
  return within(all_.requests, 1, limits_.requests) && within(all_.bytes, bytes, limits_.bytes) &&
         fits_caller(share, bytes);
}

void Admission::add(Share &share, std::uint64_t requests, std::uint64_t bytes) {
  all_.requests += requests;
  all_.bytes += bytes;
  share.requests += requests;
  share.bytes += bytes;
}

std::optional<Charge> Admission::admit(Session &session, std::uint64_t id, std::uint64_t bytes) {
  auto &share = share_of(session);
  if (share.waiting) {
    if (!take_invitation(session, id)) return std::nullopt;
  } else {
    if (!queue_.empty() || !fits(share, bytes)) return std::nullopt;
    add(share, 1, bytes);
  }
  return Charge(*this, session, 1, bytes);
}

bool Admission::take_invitation(Session &session, std::uint64_t id) {
  auto &share = share_of(session);
  auto &waiting = *share.waiting;
  waiting.is_silent = false;
  const auto entry = find(waiting, id);
  const auto place = static_cast<std::size_t>(entry - waiting.requests.begin());
  if (place >= waiting.invited) return false;
  end_invitation(session, id);
  --waiting.invited;
  --invited_;
  invited_bytes_ -= entry->bytes;
  waiting.requests.erase(entry);
  if (waiting.requests.empty()) drop(share);
  return true;
}

Charge Admission::charge(Session &session, std::uint64_t bytes) {
  add(share_of(session), 0, bytes);
  return {*this, session, 0, bytes};
}

void Admission::release(Session &session, std::uint64_t requests, std::uint64_t bytes) {
  auto &share = share_of(session);
  all_.requests -= requests;
  all_.bytes -= bytes;
  share.requests -= requests;
  share.bytes -= bytes;
  finished_ += requests;
  if (share.waiting) enqueue(*share.waiting);
}

void Admission::turn_away(Session &session, PeerId from, std::uint64_t id, std::uint64_t bytes) {
  auto &share = share_of(session);
  if (!share.waiting) {
    share.waiting = std::make_unique<Waiting>();
    share.waiting->session = &session;
    ++waiting_;
  }
  auto &waiting = *share.waiting;
  if (const auto entry = find(waiting, id); entry != waiting.requests.end())
    entry->peer = from;  // its caller has lost the connection before, which may not be known here yet
  else
    waiting.requests.push_back({id, bytes, from});
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
    auto &share = share_of(*waiting.session);
    const auto next = waiting.requests[waiting.invited];
    const bool has_own_room = fits_caller(share, next.bytes);
    if (has_own_room && !fits(share, next.bytes)) return std::nullopt;
    queue_.pop_front();
    waiting.queued = false;
    if (!has_own_room) continue;
    add(share, 1, next.bytes);
    ++invited_;
    invited_bytes_ += next.bytes;
    ++waiting.invited;
    invitations_.push_back({nessie::Clock::now() + kInvitation, waiting.session, next.id});
    enqueue(waiting);
    return next.peer;
  }
  return std::nullopt;
}

/// Those that were sent first are at the front, mostly.
void Admission::end_invitation(const Session &session, std::uint64_t id) {
  invitations_.erase(std::ranges::find_if(
      invitations_, [&](const Invitation &each) { return each.session == &session && each.id == id; }));
}

/// The room that was held free is free again.
void Admission::uninvite(Share &share, std::size_t place) {
  auto &waiting = *share.waiting;
  const auto entry = waiting.requests[place];
  end_invitation(*waiting.session, entry.id);
  --waiting.invited;
  --invited_;
  invited_bytes_ -= entry.bytes;
  all_.requests -= 1;
  all_.bytes -= entry.bytes;
  share.requests -= 1;
  share.bytes -= entry.bytes;
}

void Admission::withdraw(Session &session, std::uint64_t id) {
  auto &share = share_of(session);
  if (!share.waiting) return;
  share.waiting->is_silent = false;
  const auto entry = find(*share.waiting, id);
  if (entry != share.waiting->requests.end())
    remove(share, static_cast<std::size_t>(entry - share.waiting->requests.begin()));
}

void Admission::remove(Share &share, std::size_t place) {
  auto &waiting = *share.waiting;
  if (place < waiting.invited) uninvite(share, place);
  waiting.requests.erase(waiting.requests.begin() + static_cast<std::ptrdiff_t>(place));
  if (waiting.invited == waiting.requests.size() && std::exchange(waiting.queued, false)) std::erase(queue_, &waiting);
  if (waiting.requests.empty()) return drop(share);
  enqueue(waiting);  // there may be room for the next of them
}

void Admission::forget(Session &session, PeerId peer) {
  auto &share = share_of(session);
  for (auto place = share.waiting ? share.waiting->requests.size() : 0; place-- != 0;)
    if (share.waiting->requests[place].peer == peer) remove(share, place);
}

void Admission::drop(Share &share) {
  if (share.waiting->queued) std::erase(queue_, share.waiting.get());
  share.waiting.reset();
  --waiting_;
}

void Admission::expire() {
  const auto now = nessie::Clock::now();
  while (!invitations_.empty() && invitations_.front().until <= now) {
    auto &share = share_of(*invitations_.front().session);
    while (share.waiting->invited != 0) uninvite(share, share.waiting->invited - 1);
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
