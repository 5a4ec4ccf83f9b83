// SPDX-License-Identifier: BSD-3-Clause
// Which faults happen how often, and the dice that decide.
#pragma once

#include "nnti/transport/transport.hpp"

#include <chrono>

namespace nnti::faulty {

using Time = nessie::Clock::time_point;
using Duration = nessie::Clock::duration;

/// How long something takes: in calls of progress(), or by the clock.
struct Extent {
  std::uint64_t turns = 0;
  Duration time{0};
  bool forever = false;
};

struct Fault {
  double probability = 0;
  Extent extent;
};

/// A moment in turns and by the clock: reached when both are.
struct Moment {
  std::uint64_t turn = 0;
  Time time = Time::min();
  bool never = false;
  bool reached(const Moment &now) const { return !never && now.turn >= turn && now.time >= time; }
};

/// Settings nnti.faulty.*: a probability between 0 and 1, of each call; after a ':' the most that it takes, in turns
/// ("0.1:20"), as a duration ("0.1:20ms"), or "forever".
struct Faults {
  std::uint64_t seed = 1;
  Fault loss, duplicate, delay, reorder, transient, breaks, silent;

  /// kInvalidArgument, naming the setting.
  static Result<Faults> load(const nessie::Config &config);
};

/// Random numbers that are the same on every machine (splitmix64).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// From 0 to `count` - 1.
  std::uint64_t below(std::uint64_t count) { return count == 0 ? 0 : next() % count; }
  bool chance(double probability) {
    return probability > 0 && static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }
  /// Within `extent` from `now`.
  Moment within(const Extent &extent, const Moment &now);

 private:
  std::uint64_t state_;
};

}  // namespace nnti::faulty
