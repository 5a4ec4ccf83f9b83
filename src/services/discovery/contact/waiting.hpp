// SPDX-License-Identifier: BSD-3-Clause
// Waiting for what somebody else puts somewhere, and nobody tells of.
#pragma once

#include <base/clock.hpp>
#include <nessie/result.hpp>

#include <algorithm>
#include <functional>

namespace nessie::service {

/// Lets time pass. An error ends what waits, and is its error.
using Pause = std::function<Status(Clock::duration)>;
/// Puts the thread to sleep.
Status sleep(Clock::duration time);

/// Calls `look` until it finds something, or an error that time does not mend: another one than kNotFound and
/// kPeerLost. At growing intervals, of 100 ms at most. At the deadline, the result of the last look.
template <class Look> auto keep_looking(Look look, Deadline deadline, const Pause &pause) -> decltype(look()) {
  constexpr std::chrono::milliseconds kFirst{1}, kLongest{100};
  for (Clock::duration wait = kFirst;; wait = std::min<Clock::duration>(2 * wait, kLongest)) {
    auto found = look();
    const bool may_change = found.code() == Code::kNotFound || found.code() == Code::kPeerLost;
    if (!may_change || deadline.passed()) return found;
    const auto left = std::max(deadline.when() - Clock::now(), Clock::duration(0));
    if (auto status = pause(deadline.is_never() ? wait : std::min(wait, left)); !status.ok()) return status.error();
  }
}

}  // namespace nessie::service
