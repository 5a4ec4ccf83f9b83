// SPDX-License-Identifier: BSD-3-Clause
// What a job script asks Slurm for, in its #SBATCH lines, and what to change there for staging servers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

struct JobRequest {
  std::size_t line = 0;  ///< of the last directive about processors; 0: there is none
  std::string ntasks, ntasks_per_node, nodes, cpus_per_task;
  bool is_exclusive = false;
  bool has_memory = false;
  int components = 1;  ///< of a heterogeneous job
};

/// The directives up to the first command, as sbatch reads them. Of a heterogeneous job the first component counts: the
/// script, and the servers, run on its first node.
JobRequest read_directives(std::string_view script);

/// What to change, in sentences; the script's programs are started by srun without a number of processes of their own
/// where `takes_all_tasks`.
std::vector<std::string> advise(const JobRequest &request, bool takes_all_tasks);

}  // namespace nessie::cli
