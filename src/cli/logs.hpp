// SPDX-License-Identifier: BSD-3-Clause
// The logs that the servers of a run have left, or keep: folders server.N in one that is the run's (log_folder.hpp).
#pragma once

#include <nessie/result.hpp>
#include <services/staging/server/left.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

/// The logs of one run, or one of them.
struct Logs {
  std::string asked;         ///< what was named, as an absolute path
  std::string folder;        ///< the run's
  std::vector<int> servers;  ///< which of them have left one
  int of = 1;                ///< how many there were at least
  std::string path(int server) const;
};
/// In a folder of a run's logs, or one of these. One that was left by a run, and is there no more, has none. kNotFound:
/// it is no such folder. kIo.
Result<Logs> find_logs(const std::string &given);

/// Whether a server has it open.
bool is_log_in_use(const std::string &log);

/// What is in one; nothing is changed there. Errors as staging::look_at_journal().
Result<staging::Left> look_at_log(const std::string &log);

}  // namespace nessie::cli
