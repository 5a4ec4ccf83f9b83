// SPDX-License-Identifier: BSD-3-Clause
#include <service/moves.hpp>

#include <algorithm>
#include <utility>

namespace nessie::service {

std::size_t Moves::count() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

bool Moves::is_slow(nssi::PeerId caller) const {
  const auto late = Clock::now() - options_.slow;
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(all_, [&](const Move *move) { return move->caller_ == caller && move->since_ < late; });
}

void Moves::begin(Move &move) {
  {
    const std::lock_guard lock(mutex_);
    all_.push_back(&move);
    if (options_.patience == Clock::duration::zero() || std::exchange(is_watched_, true)) return;
  }
  runtime_.spawn([this] { watch(); });
}

void Moves::end(Move &move) {
  const std::lock_guard lock(mutex_);
  std::erase(all_, &move);
}

/// Until nothing moves, or the runtime ends.
void Moves::watch() {
  nssi::Event nothing(runtime_);
  while (nothing.wait(Deadline::in(options_.patience / 4)).code() == Code::kTimedOut) {
    for (const auto caller : callers_that_are_late()) {
      runtime_.disconnect(caller);
      if (options_.give_up) options_.give_up(caller);
    }
    const std::lock_guard lock(mutex_);
    if (all_.empty()) return void(is_watched_ = false);
  }
}

std::vector<nssi::PeerId> Moves::callers_that_are_late() {
  std::vector<nssi::PeerId> late;
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (auto *move : all_) {
    if (options_.is_excused && options_.is_excused(move->caller_)) move->patient_since_ = now;
    const bool is_known = std::ranges::find(late, move->caller_) != late.end();
    if (now - move->patient_since_ > options_.patience && !is_known) late.push_back(move->caller_);
  }
  return late;
}

}  // namespace nessie::service
