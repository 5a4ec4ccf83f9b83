// SPDX-License-Identifier: BSD-3-Clause
// When a server that has died is started again, and when no more.
#pragma once

#include <base/clock.hpp>

#include <deque>
#include <optional>

namespace nessie::cli {

/// Of one server: at once, then after pauses that grow; not if it has died too often within seconds, as one does that
/// cannot start, or that meets the same fault again and again.
class Restarts {
 public:
  /// It has died: when to start it again; nothing: no more.
  std::optional<Deadline> next(Clock::time_point now);

 private:
  std::deque<Clock::time_point> recent_;  ///< deaths
};

}  // namespace nessie::cli
