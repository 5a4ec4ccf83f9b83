// SPDX-License-Identifier: BSD-3-Clause
// How a launcher is told which hosts are not for the program.
#pragma once

#include "environment.hpp"
#include "host_lists.hpp"

#include <string>
#include <vector>

namespace nessie::cli {

/// The command with the words that keep its program to `program`, and from `servers_only`: Open MPI's --host, Hydra's
/// -hosts, srun's --exclude and --nodes; in place of, or beside, those that it has. A host whose slots were not told
/// has `cores`. kUnsupported: the launcher is not in the command, or not known. kInvalidArgument: nothing is left for a
/// program.
Result<std::vector<std::string>> keep_apart(const HostList &program, const HostList &servers_only, int cores,
                                            const std::vector<std::string> &command, const Environment &environment);

}  // namespace nessie::cli
