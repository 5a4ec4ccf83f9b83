// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/line.hpp>

#include <algorithm>

namespace staging {

using nessie::Deadline;

namespace {

constexpr std::chrono::milliseconds kMoment{50};
constexpr int kBeginsWithin = 20;  // moments in which this process ran

std::int64_t now_ns() { return nessie::Clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

}  // namespace

/// Behind all that was sent before, or at the same instant.
Line::Position Line::enter(Waiting waiting) {
  auto after = waiting_.end();
  while (after != waiting_.begin() && std::prev(after)->sent_ns > waiting.sent_ns) --after;
  return waiting_.insert(after, std::move(waiting));
}

Line::Position Line::begin(nssi::PeerId caller, std::int64_t sent_ns) {
  auto place = std::ranges::find_if(
      waiting_, [=](const Waiting &one) { return one.caller == caller && one.sent_ns == sent_ns && !one.is_begun; });
  if (place == waiting_.end()) place = enter({sent_ns != 0 ? sent_ns : now_ns(), caller, false, false, {}});
  place->is_begun = true;
  return place;
}

const Line::Waiting *Line::who_goes_before(const Waiting &one) const {
  for (const auto &other : waiting_) {
    if (&other == &one) break;
    if (!other.is_begun || !other.is_held_up || !other.is_held_up()) return &other;
  }
  return has_turn_;
}

/// What its sender has given up is never begun: it is given up here, too.
void Line::await_nobody(const std::function<const Waiting *()> &in_the_way) {
  int moments = 0;
  for (const Waiting *who = in_the_way(); who != nullptr; who = in_the_way()) {
    if (!who->is_begun && moments >= kBeginsWithin) {
      waiting_.remove_if([=](const Waiting &one) { return &one == who; });
      continue;
    }
    if (!who->is_begun) runtime_.hasten_bulk();
    const bool is_begun = who->is_begun;
    const auto status = changed_.wait(Deadline::in(kMoment));
    if (status.code() == nessie::Code::kCancelled) return;
    moments = status.ok() || is_begun ? 0 : moments + 1;
  }
}

void Line::await_arrived() {
  const auto now = now_ns();
  await_nobody([&]() -> const Waiting * {
    const auto first = std::ranges::find_if(waiting_, &Waiting::has_returned);
    return first == waiting_.end() || first->sent_ns > now ? nullptr : &*first;
  });
}

Line::Place::Place(Line &line, nssi::PeerId caller, std::int64_t sent_ns, std::function<bool()> is_held_up)
    : line_(line), position_(line.begin(caller, sent_ns)) {
  position_->is_held_up = std::move(is_held_up);
}

Line::Place::~Place() {
  if (line_.has_turn_ == &*position_) line_.has_turn_ = nullptr;
  line_.waiting_.erase(position_);
  line_.changed_.notify_all();
}

void Line::Place::await_turn() {
  position_->is_held_up = {};
  line_.await_nobody([&] { return line_.who_goes_before(*position_); });
  line_.has_turn_ = &*position_;
}

}  // namespace staging
