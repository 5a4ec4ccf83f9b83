// SPDX-License-Identifier: BSD-3-Clause
// Servers in the processes of a run's program (src/interpose/embedded): what it starts with, and what they leave.
#pragma once

#include "environment.hpp"
#include "summary.hpp"

#include <nessie/result.hpp>

#include <string>
#include <vector>

namespace nessie::cli {

/// For NESSIE_SERVERS: each MPI job of the program has so many.
std::string embedded_servers(int count);

struct EmbeddedStart {
  std::string library;  ///< what is put in front of the program's MPI
  std::string mode, memory;
  std::string transports;  ///< empty: all
  std::string folder;      ///< for ledgers and reports
};
/// Adds to what put_in_front() has set: LD_PRELOAD, and settings for the servers. The variables that it has set.
std::vector<std::string> put_servers_in(const EmbeddedStart &start, Environment &environment);

/// Boards for all jobs that the program may have at once, with `servers` each, as far as there is room. How many.
int prepare_boards(const std::string &folder, int servers);

/// Reads the reports of servers that have ended, and the ledgers of those that were killed.
void collect_from(const std::string &folder, const std::string &board_folder, RunRecord &record);

}  // namespace nessie::cli
