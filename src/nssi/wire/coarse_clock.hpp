// SPDX-License-Identifier: BSD-3-Clause
// Time for the hot path. A precise reading costs tens of nanoseconds on many machines, a coarse one three, and an empty
// call would need ten of them.
#pragma once

#include <time.h>
#include <base/clock.hpp>

namespace nssi {

/// steady_clock's time, up to kCoarseness late.
inline nessie::Clock::time_point coarse_now() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return nessie::Clock::time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}
inline constexpr std::chrono::milliseconds kCoarseness{20};

/// Exactly deadline.passed(), without the cost while the deadline is far.
inline bool has_passed(nessie::Deadline deadline) {
  if (deadline.is_never()) return false;
  return coarse_now() + kCoarseness >= deadline.when() && deadline.passed();
}

}  // namespace nssi
