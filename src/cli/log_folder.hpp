// SPDX-License-Identifier: BSD-3-Clause
// Where the servers of one run, or the one beside an agent, keep their logs: server.N of a folder of their own, on
// storage of this node that outlives them.
#pragma once

#include <nessie/result.hpp>

#include <string>
#include <string_view>

namespace nessie::cli {

/// What a file survives that says nothing else: `memory`.
inline constexpr const char *kDefaultDurability = "memory";
/// Whether servers keep logs for it. Empty: nothing was said.
bool needs_log(std::string_view durability);

class LogFolder {
 public:
  /// In `base`; if that is empty, in the first of $TMPDIR, /var/tmp that can be written and is not in memory, or else
  /// in $TMPDIR or /tmp. Made at once if `is_needed`, with mode 0700; otherwise the first server makes it that needs
  /// it. kIo: it cannot be made.
  static Result<LogFolder> choose(const std::string &base, bool is_needed);
  LogFolder(LogFolder &&other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  LogFolder &operator=(LogFolder &&) = delete;
  /// Removes it, if nothing is left in it.
  ~LogFolder() { (void)remove(); }

  const std::string &path() const { return path_; }
  /// False: something is left in it that is not in the files.
  bool remove() const;

 private:
  explicit LogFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Of a folder in which something is left: "what is not in the files is kept in …".
std::string describe_left(const std::string &folder);

}  // namespace nessie::cli
