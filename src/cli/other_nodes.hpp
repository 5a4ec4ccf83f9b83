// SPDX-License-Identifier: BSD-3-Clause
// Jobs of several nodes.
#pragma once

#include "environment.hpp"

#include <string>
#include <vector>

namespace nessie::cli {

/// Whether the command may start processes on other nodes: it, or the environment, names hosts that are not this one,
/// or the batch job has several.
bool may_use_other_nodes(const std::vector<std::string> &command, const Environment &environment);

/// Has Open MPI's mpiexec, which the command calls or may start, carry variables to other nodes. It carries nothing
/// that it is not told of, by words of the command or by the environment; other launchers carry all.
void carry_to_other_nodes(const std::vector<std::string> &variables, std::vector<std::string> &command,
                          Environment &environment);

}  // namespace nessie::cli
