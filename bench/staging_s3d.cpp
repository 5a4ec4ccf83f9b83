// SPDX-License-Identifier: BSD-3-Clause
// staging-s3d: what a simulation's checkpoints cost it. staging-overlap: how much of that is hidden behind computing.
// The program is examples/clients/checkpoint.c, which knows nothing of Nessie.
#include "machine.hpp"
#include "staging_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

using nessie::Status;

const std::vector<int> kProcesses{2, 4, 8, 16}, kQuickProcesses{8}, kOnceProcesses{2};
constexpr int kLargeProcesses = 8;        ///< of the large blocks
constexpr int kMostOverlapProcesses = 8;  ///< so that the files do not fill the disk

/// `n`: cells of each process in each direction.
std::vector<std::string> kernel(int n, int steps, int compute_ms) {
  return {"nessie-bench-s3d",    "--n",          std::to_string(n),         "--steps",
          std::to_string(steps), "--compute-ms", std::to_string(compute_ms)};
}

std::vector<StagingCase> s3d_cases(const Options &options) {
  auto list = options.once ? kOnceProcesses : options.quick ? kQuickProcesses : kProcesses;
  if (options.processes > 0) list = {options.processes};
  std::vector<StagingCase> cases;
  for (int processes : list)
    cases.push_back({.processes = processes, .program = options.once ? kernel(8, 2, 1) : kernel(32, 8, 20)});
  const int processes = options.processes > 0 ? options.processes : options.once ? list.back() : kLargeProcesses;
  cases.push_back(
      {.variant = "n64", .processes = processes, .program = options.once ? kernel(16, 1, 1) : kernel(64, 2, 20)});
  return cases;
}

}  // namespace

Status staging_s3d(const Options &options, Report &report) {
  return compare_staging(options, s3d_cases(options), report);
}

/// Computes before each output for as long as native PnetCDF takes for it, on fewer processes than there are cores.
Status staging_overlap(const Options &options, Report &report) {
  const int cores = static_cast<int>(usable_cores().size());
  const int n = options.once ? 16 : 64, steps = options.once ? 2 : 8;
  StagingCase c{.processes = std::clamp(cores - 1, 1, kMostOverlapProcesses), .program = kernel(n, steps, 0)};
  if (options.processes > 0) c.processes = options.processes;
  c.overlaps = true;
  StagingComparison comparison(options, staging_repetitions(options), 1, report);
  auto fastest = comparison.fastest_native(c);
  if (!fastest) return fastest.error();
  const double output_s = fastest->figures.at("perceived_s") / steps;
  c.program = kernel(n, steps, std::max(1, static_cast<int>(std::lround(output_s * 1000))));
  report.note(
      fmt::format("{} processes on {} cores compute for {} ms before each of {} outputs: as long as one took on {}.",
                  c.processes, cores, c.program.back(), steps, fastest->mpi_io));
  return comparison.measure(c);
}

}  // namespace bench
