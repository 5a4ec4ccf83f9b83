// SPDX-License-Identifier: BSD-3-Clause
// Workloads in which several processes measure at once: each with a follower of its own, or all with the same target;
// ours, and the rivals'.
#pragma once

#include "comparison.hpp"
#include "nnti_team.hpp"

#include <string>
#include <vector>

namespace bench {

/// What the rivals are asked for beside one of our measurements, and the mode under which it is reported.
struct Beside {
  const char *question, *mode;
};

struct Measurement {
  std::string mode;  ///< of our series
  Waiting waiting;
  std::uint64_t size_bytes;
  int answer_every;  ///< of the followers; see Team
  Lead lead;
  double (*figure)(Board &board, int leaders);  ///< in the unit of the rivals' answers
  std::vector<Beside> beside;
};

struct ManyLeaders {
  const char *what;  ///< for the terminal
  std::vector<int> leaders;
  bool one_target;
  Metric metric;
  Convert reported;  ///< ours and the rivals', in the metric's unit
  std::vector<Measurement> measurements;
};

nessie::Status run_many_leaders(const Options &options, int repetitions, const ManyLeaders &workload, Report &report);

}  // namespace bench
