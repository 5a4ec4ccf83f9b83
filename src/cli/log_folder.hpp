// SPDX-License-Identifier: BSD-3-Clause
// Where the servers of one run, or the one beside an agent, keep their logs: server.N of a folder of their own, on
// storage of this node that outlives them.
#pragma once

#include <base/fd.hpp>
#include <nessie/result.hpp>

#include <string>
#include <string_view>

namespace nessie::cli {

/// What a file survives that says nothing else: `memory`.
inline constexpr const char *kDefaultDurability = "memory";
/// Whether any file outlives its server by these rules (staging::DurabilityRules).
bool keeps_files(std::string_view durability);

/// How a run's folder of logs is called; behind it stands what is its own.
inline constexpr char kLogFolderPrefix[] = "nessie-log.";

class LogFolder {
 public:
  /// In `base`; if that is empty, in the first of $TMPDIR, /var/tmp that can be written and is not in memory, or else
  /// in $TMPDIR or /tmp. Made at once, with mode 0700, if `base` was said, or these rules (staging::DurabilityRules)
  /// keep any file; otherwise the first server makes it that needs it. kIo: it cannot be made. kInvalidArgument: these
  /// are no rules.
  static Result<LogFolder> choose(const std::string &base, std::string_view durability);
  LogFolder(LogFolder &&other) noexcept : path_(std::move(other.path_)), lock_(std::move(other.lock_)) {
    other.path_.clear();
  }
  LogFolder &operator=(LogFolder &&) = delete;
  /// Removes it, if nothing is left in it.
  ~LogFolder() { (void)remove(); }

  const std::string &path() const { return path_; }
  /// False: something is left in it that is not in the files.
  bool remove() const;
  /// Notes in a run's private folder where it is, for logged_in().
  void note_in(const std::string &run_directory) const;

 private:
  explicit LogFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
  Fd lock_;  ///< of a folder that was made: as long as a process of the run lives that has it
};

/// Where the servers of a run have their logs, of which this is the private folder; empty: nowhere.
std::string logged_in(const std::string &run_directory);

/// Of a folder in which something is left: "what is not in the files is kept in …".
std::string describe_left(const std::string &folder);

}  // namespace nessie::cli
