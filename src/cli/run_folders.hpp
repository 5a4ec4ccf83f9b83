// SPDX-License-Identifier: BSD-3-Clause
// All folders of one `nessie run`.
#pragma once

#include "janitor.hpp"
#include "log_folder.hpp"
#include "run_directory.hpp"

#include <optional>
#include <string>

namespace nessie::cli {

/// They are removed when dropped, or by the janitor if this process is killed.
class RunFolders {
 public:
  /// `own`: the private one. `log_folder`: none, where no server is a child of this process. One in memory is made only
  /// where the whole program is on this node: others would not have it.
  RunFolders(RunDirectory own, std::optional<LogFolder> log_folder, bool other_nodes, const std::string &credential);

  const RunDirectory &own() const { return own_; }
  /// Where processes of any user find the boards: in memory, if that has room.
  const std::string &open() const { return open_; }
  /// Where the program's MPI may keep its shared memory; nullptr: where it likes.
  const std::string *in_memory() const { return in_memory_ ? &in_memory_->path() : nullptr; }
  /// The same library, by a path that LD_PRELOAD can say: it knows no quoting, so a folder with a blank or a colon in
  /// its name is reached through a link.
  std::string preloadable(const std::string &library) const;
  /// Where the servers keep their logs; empty: nowhere here.
  std::string log() const { return log_ ? log_->path() : std::string(); }
  /// Returns the folder, if something is left in it.
  std::string remove_log() const { return log_ && !log_->remove() ? log_->path() : std::string(); }
  pid_t janitor() const { return janitor_->pid(); }

 private:
  std::optional<Janitor> janitor_;  ///< goes after the folders
  RunDirectory own_;
  std::optional<LogFolder> log_;
  std::optional<RunDirectory> in_memory_, for_others_;
  std::string open_;
};

}  // namespace nessie::cli
