// SPDX-License-Identifier: BSD-3-Clause
// What `nessie run` tells at the end, for people and as JSON, and the exit code that follows from it.
#pragma once

#include <staging.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace nessie::cli {

/// EX_IOERR of sysexits.h: the program succeeded, but not all of its data reached the files.
inline constexpr int kExitDataLost = 74;

/// Where the servers were, and how they came there.
struct ServersRecord {
  struct Server {
    std::string host, url;                 ///< empty: it never listened
    std::string cores;                     ///< hardware threads that it was kept to: "6-7"; empty: any
    std::vector<std::string> deaths = {};  ///< how those ended in whose place one was started again
  };
  std::string place;  ///< what --place says
  std::string
      started;  ///< "child": by `nessie run`; "launcher": in a job of their own; "mpmd": as ranks of the program's
  std::vector<Server> servers;  ///< by index
};

struct RunRecord {
  std::vector<std::string> command;
  std::string mode;
  std::string memory, durability;
  int servers = 1;
  ServersRecord placement;
  int program_exit_code = 0;
  double start_s = 0;              ///< until all servers could be reached
  double program_s = 0;            ///< from the program's start to its end
  double drain_s = 0;              ///< from its end until everything was in the files
  bool gave_up = false;            ///< the user ended the drain
  std::string preload_library;     ///< what was put in front of PnetCDF
  std::vector<std::string> notes;  ///< what it said of programs that it could not stage, or not wholly
  /// The last report of each server that gave one.
  std::vector<staging::ReportResult> reports;
  /// Servers that ended before their work did: "staging server 1 was killed by signal 9 (Killed)".
  std::vector<std::string> broken_servers;
  int broken_at_work = 0;            ///< of those: had files, and did not tell all that they did
  int broken_with_files = 0;         ///< of those: files are not whole, or it is not known whether they are
  std::uint64_t untold_natives = 0;  ///< files that went native, of which only those servers knew which and why
  std::string kept_log;  ///< the folder where servers have left logs of what is not in the files; empty: none has
  /// What was acknowledged and is not in the files, besides the failures in the reports.
  std::vector<staging::FileReport> lost;
};

/// The servers' reports as one.
struct Totals {
  /// Counters added up, files joined by path; of clients and memory, the server's that had most. No times.
  staging::ReportResult all;
  double perceived_bytes_per_s = 0;  ///< while data were pulled
  double durable_bytes_per_s = 0;    ///< while data were written to the files
  double durable_s = 0;              ///< from the first write to the last byte in a file
};
Totals add_up(const RunRecord &record);

/// Lines for stderr, each ending in a newline: what was done, and what went wrong (empty if nothing did).
std::string describe_work(const RunRecord &record);
std::string describe_trouble(const RunRecord &record);
nlohmann::json to_json(const RunRecord &record);
/// The program's own code; kExitDataLost if that is 0 and data did not reach the files or a server broke at work.
int exit_code(const RunRecord &record);

}  // namespace nessie::cli
