// SPDX-License-Identifier: BSD-3-Clause
// `nessie agent`: one staging server on the node where a launcher has put this process. It starts it, tells the run
// where it is and how it ended, and has it finish when the run is gone. `nessie run` starts it; nobody else needs to.
#pragma once

#include <string>
#include <vector>

namespace nessie::cli {

struct AgentOptions {
  std::string run;                          ///< URL of the run's launch service
  int servers = 1;                          ///< how many the run has; the launcher's last ranks are theirs
  std::string mode, memory;                 ///< of the server
  std::string durability;                   ///< of the server; empty: as the settings say
  std::string log_base;                     ///< as LogFolder::choose() takes it
  std::string spill, fail_fast, read_back;  ///< settings of the server; empty: not said
  std::string board_directory;              ///< made, if it is not there
  std::string listen;                       ///< the server's transports; empty: all
  std::string cores;                        ///< of each server, by index, "6-7/6-7"; where nothing stands: any
  bool is_rank = false;   ///< stands for a rank of the program's job: the end of stdin is the end of MPI there
  bool is_first = false;  ///< the servers' ranks are the launcher's first ones, not the last
};
/// 0: the server ended, however, and the run knows of it.
int agent(const AgentOptions &options);

/// What starts an agent, behind the words of a launcher.
std::vector<std::string> agent_command(const std::string &nessie, const AgentOptions &options);

}  // namespace nessie::cli
