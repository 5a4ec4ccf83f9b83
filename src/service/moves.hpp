// SPDX-License-Identifier: BSD-3-Clause
// Whose data are on their way, and since when: so that who moves them slowly, or not at all, holds nobody else up.
#pragma once

#include <base/clock.hpp>
#include <nssi/nssi.hpp>

#include <algorithm>
#include <list>

namespace nessie::service {

/// On the thread that drives.
class Moves {
 public:
  explicit Moves(Clock::duration slow) : slow_(slow) {}

  /// A transfer, for as long as this lives.
  class Move {
   public:
    Move(Moves &moves, nssi::PeerId caller)
        : moves_(moves), at_(moves.all_.insert(moves.all_.end(), {caller, Clock::now()})) {}
    ~Move() { moves_.all_.erase(at_); }
    Move(const Move &) = delete;

   private:
    Moves &moves_;
    const std::list<std::pair<nssi::PeerId, Clock::time_point>>::iterator at_;
  };

  /// Whether one of the caller's takes longer than it should.
  bool is_slow(nssi::PeerId caller) const {
    const auto late = Clock::now() - slow_;
    return std::ranges::any_of(all_, [&](const auto &move) { return move.first == caller && move.second < late; });
  }

 private:
  const Clock::duration slow_;
  std::list<std::pair<nssi::PeerId, Clock::time_point>> all_;
};

}  // namespace nessie::service
