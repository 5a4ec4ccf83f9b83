// SPDX-License-Identifier: BSD-3-Clause
// Whose data are on their way, and since when: so that who moves them slowly, or not at all, holds nobody else up.
#pragma once

#include <base/clock.hpp>
#include <nssi/nssi.hpp>

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

namespace nessie::service {

/// Any thread.
class Moves {
  using All = std::list<std::pair<nssi::PeerId, Clock::time_point>>;

 public:
  explicit Moves(Clock::duration slow) : slow_(slow) {}

  /// A transfer, for as long as this lives.
  class Move {
   public:
    Move(Moves &moves, nssi::PeerId caller) : moves_(moves), at_(moves.begin({caller, Clock::now()})) {}
    ~Move() { moves_.end(at_); }
    Move(const Move &) = delete;

   private:
    Moves &moves_;
    const All::iterator at_;
  };

  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }
  /// Whether one of the caller's takes longer than it should.
  bool is_slow(nssi::PeerId caller) const {
    const auto late = Clock::now() - slow_;
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(all_, [&](const auto &move) { return move.first == caller && move.second < late; });
  }

 private:
  All::iterator begin(const All::value_type &move) {
    const std::lock_guard lock(mutex_);
    return all_.insert(all_.end(), move);
  }
  void end(All::iterator move) {
    const std::lock_guard lock(mutex_);
    all_.erase(move);
  }

  const Clock::duration slow_;
  mutable std::mutex mutex_;
  All all_;
};

}  // namespace nessie::service
