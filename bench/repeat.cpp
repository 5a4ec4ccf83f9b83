// SPDX-License-Identifier: BSD-3-Clause
#include "repeat.hpp"

#include "machine.hpp"
#include "options.hpp"

#include <fmt/format.h>

namespace bench {
namespace {

void note_conditions(const CoreWatch &watch, std::size_t dropped, Report &report) {
  if (usable_cores().size() < 2) return report.note("Only one core: every message waits for a change of process.");
  report.note(
      fmt::format("A cache line takes {:.2f} us from core to core; {} repetitions were left out, because the two "
                  "cores shared a physical one.",
                  watch.typical_us(), dropped));
}

}  // namespace

nessie::Status repeat_on_fit_cores(int repetitions, Report &report, const std::string &what,
                                   const std::function<nessie::Status(int repetition)> &measure) {
  Progress progress(repetitions);
  CoreWatch watch;
  watch.bracket();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    progress.step(what);
    if (auto status = measure(repetition); !status.ok()) return status;
    watch.bracket();
  }
  auto unfit = watch.unfit();
  for (int repetition : unfit) report.drop(repetition);
  note_conditions(watch, unfit.size(), report);
  return {};
}

}  // namespace bench
