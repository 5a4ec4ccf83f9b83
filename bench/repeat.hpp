// SPDX-License-Identifier: BSD-3-Clause
// Repetitions of a run in which two cores talk to each other.
#pragma once

#include "report.hpp"

#include <nessie/result.hpp>

#include <functional>
#include <string>

namespace bench {

/// Calls `measure` for each repetition, brackets them with a ping-pong of a cache line, and takes out of the report
/// those during which the cores were threads of one physical core; a note says how many. Returns the first error.
nessie::Status repeat_on_fit_cores(int repetitions, Report &report, const std::string &what,
                                   const std::function<nessie::Status(int repetition)> &measure);

/// The same for what has a `measure(repetition)`; its ratios are added when nothing failed.
template <class Measurement>
nessie::Status compare_on_fit_cores(int repetitions, Report &report, const std::string &what,
                                    Measurement &measurement) {
  auto status =
      repeat_on_fit_cores(repetitions, report, what, [&](int repetition) { return measurement.measure(repetition); });
  if (status.ok()) measurement.add_ratios();
  return status;
}

}  // namespace bench
