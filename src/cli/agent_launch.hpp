// SPDX-License-Identifier: BSD-3-Clause
// The words by which a launcher starts agents where their servers are to be: as a job of their own, beside the
// program's; or as ranks of the program's job.
#pragma once

#include "environment.hpp"
#include "placement.hpp"
#include "srun_step.hpp"

#include <nessie/result.hpp>

#include <string>
#include <vector>

namespace nessie::cli {

/// A job of its own, with the launcher that the program's command has, and what it says of how to reach hosts; srun or
/// mpiexec, where it has none. Agent i is process i. Sets in `environment` what the launcher takes from there; a file
/// that it needs is made in `folder`. kUnsupported: the launcher is not known.
Result<std::vector<std::string>> agents_job(const std::vector<ServerPlace> &places,
                                            const std::vector<std::string> &agent,
                                            const std::vector<std::string> &command, const std::string &folder,
                                            Environment &environment);

/// The program's job with a rank more for each place, which runs `service`: with Open MPI's mpiexec, behind the
/// program's own; with srun, as step_with_services() says. kUnsupported, too: the launcher is not in the command, or
/// not known to start jobs of several programs.
Result<std::vector<std::string>> with_services(const std::vector<std::string> &command,
                                               const std::vector<ServerPlace> &places,
                                               const std::vector<std::string> &service, const std::string &folder,
                                               const Environment &environment, const AskCommand &ask);

/// Gives the program a world without the services (CommSplitter, preloaded), and lets the launcher start more ranks
/// than it has slots for: the services take none.
void split_world(const std::string &commsplitter, Environment &environment);

}  // namespace nessie::cli
