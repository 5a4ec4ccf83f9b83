// SPDX-License-Identifier: BSD-3-Clause
// nessie run: a program, unchanged, with staging servers beside it.
#pragma once

#include <string>
#include <vector>

namespace nessie::cli {

struct RunOptions {
  int servers = 1;
  std::string mode;       ///< empty: the setting staging.mode, or auto
  std::string memory;     ///< of each server; empty: the setting staging.memory, or a quarter of what is free, shared
  std::string json_file;  ///< where to write the summary as JSON; empty: nowhere
  bool quiet = false;     ///< say nothing unless something went wrong
  std::vector<std::string> command;
};

/// The exit code: the program's own; 74 if that is 0 and data did not reach the files; 126 or 127 if the program could
/// not be started; 1 if Nessie could not.
int run(const RunOptions &options);

}  // namespace nessie::cli
