// SPDX-License-Identifier: BSD-3-Clause
// Which hosts a job has, and how many processes its command starts there: by the launcher's own words, or by what batch
// systems tell their jobs. Files and the environment are read; nothing is changed, and no network asked.
#pragma once

#include "environment.hpp"
#include "host_lists.hpp"

#include <string>
#include <vector>

namespace nessie::cli {

struct Allocation {
  HostList hosts;  ///< never empty
  std::string
      source;  ///< who told of them, as "--host" or "PBS_NODEFILE"; empty: nobody, and this host is the only one
};

/// What a launcher was asked to start.
struct Ranks {
  int count = 0;     ///< processes of all of its programs; 0: as many as there are slots
  int per_host = 0;  ///< at most; 0: as many as a host has slots
};

/// All who tell of hosts, the most important one first: the launcher's options, its settings, the batch system. Each
/// may be an error: kNotFound: a file cannot be read; kInvalidArgument: it is no list, or names nobody.
std::vector<Result<Allocation>> told_allocations(const std::vector<std::string> &command,
                                                 const Environment &environment);
/// The first of these, or this host alone.
Result<Allocation> find_allocation(const std::vector<std::string> &command, const Environment &environment);

/// Whether it is one of Slurm's heterogeneous jobs, of whose components but the first one nothing is told here.
bool has_several_components(const Environment &environment);

Ranks find_ranks(const std::vector<std::string> &command, const Environment &environment);

}  // namespace nessie::cli
