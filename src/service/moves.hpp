// SPDX-License-Identifier: BSD-3-Clause
// Whose data are on their way, and since when: so that a caller that moves them slowly, or not at all, holds nobody
// else up, and is given up in the end.
#pragma once

#include <base/clock.hpp>
#include <nssi/nssi.hpp>

#include <functional>
#include <mutex>
#include <vector>

namespace nessie::service {

struct MovesOptions {
  /// A caller one of whose transfers takes longer is slow.
  Clock::duration slow;
  /// One whose transfer takes longer is disconnected, and `give_up` told of it, in a fiber. 0: nobody is.
  Clock::duration patience{0};
  std::function<void(nssi::PeerId)> give_up = {};
  /// Whether a caller has a reason, as a process that was stopped: its patience begins anew. In that fiber, too.
  std::function<bool(nssi::PeerId)> is_excused = {};
};

/// Any thread. Ends after its runtime, or when nothing moves any more.
class Moves {
 public:
  class Move;
  Moves(nssi::Runtime &runtime, MovesOptions options) : runtime_(runtime), options_(std::move(options)) {}
  Moves(const Moves &) = delete;

  std::size_t count() const;
  bool is_slow(nssi::PeerId caller) const;

 private:
  void begin(Move &move);
  void end(Move &move);
  void watch();
  std::vector<nssi::PeerId> callers_that_are_late();

  nssi::Runtime &runtime_;
  const MovesOptions options_;
  mutable std::mutex mutex_;
  std::vector<Move *> all_;
  bool is_watched_ = false;  ///< a fiber looks after them
};

/// A transfer, for as long as this lives.
class Moves::Move {
 public:
  Move(Moves &moves, nssi::PeerId caller) : moves_(moves), caller_(caller) { moves_.begin(*this); }
  ~Move() { moves_.end(*this); }
  Move(const Move &) = delete;

 private:
  friend class Moves;
  Moves &moves_;
  const nssi::PeerId caller_;
  const Clock::time_point since_ = Clock::now();
  Clock::time_point patient_since_ = since_;
};

}  // namespace nessie::service
