// SPDX-License-Identifier: BSD-3-Clause
// Where everything of a `nessie run` is to be, before anything starts.
#pragma once

#include "commands.hpp"
#include "environment.hpp"
#include "placement.hpp"

#include <nessie/result.hpp>

#include <string>
#include <vector>

namespace nessie::cli {

struct Plan {
  Placement placement;
  std::vector<std::string> command;  ///< the program's, on the hosts that are left to it

  /// Whether a launcher has to start some of the servers.
  bool is_elsewhere() const;
  /// How many servers share the memory of a node, at most.
  int servers_of_a_node() const;
};

/// kInvalidArgument: what the user wants does not go together; it says what to do.
Result<Plan> make_plan(const RunOptions &options, const Environment &environment);

/// For --dry-run: to stdout, and as JSON where that is asked for. The exit code.
int print(const Plan &plan, const RunOptions &options);

}  // namespace nessie::cli
