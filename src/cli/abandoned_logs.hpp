// SPDX-License-Identifier: BSD-3-Clause
// Logs, and what was spilled, that runs of this user have left whose processes are all gone.
#pragma once

#include <base/fd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace nessie::cli {

struct AbandonedLogs {
  std::string path;      ///< of a run's logs, or of what a server has spilled
  Fd lock;               ///< held, so that no other `nessie clean` is at it
  std::string why_kept;  ///< what has to be done first: it holds data, or may do so; empty: nobody needs it
  std::uint64_t size_bytes = 0;
};

/// In `folders`, each once.
std::vector<AbandonedLogs> find_abandoned_logs(const std::vector<std::string> &folders);

/// Removes what nobody needs: of logs only those that no server has opened meanwhile. What went wrong; empty: nothing.
std::string remove_abandoned_logs(const AbandonedLogs &logs);

}  // namespace nessie::cli
