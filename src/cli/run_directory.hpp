// SPDX-License-Identifier: BSD-3-Clause
// The folders of one `nessie run`: a private one for URL files, reports and ledgers of its servers; one in memory.
#pragma once

#include <base/fd.hpp>
#include <nessie/result.hpp>

#include <string>
#include <vector>

namespace nessie::cli {

/// What separates names in LD_PRELOAD, which knows no quoting.
inline constexpr char kPreloadSeparators[] = " :";

/// A folder for them with a longer name is a last resort: Open MPI keeps sockets below it, whose paths are short by law
/// (sun_path).
inline constexpr std::size_t kMaxBaseLength = 64;

/// Where they may be, the better first: the user's own, the job's, the system's.
std::vector<std::string> run_folder_bases();

/// Made with mode 0700, and locked (run_lock.hpp); removed, with all that is in it, when dropped.
class RunDirectory {
 public:
  /// In the first of $XDG_RUNTIME_DIR, $TMPDIR, /tmp, /var/tmp, /dev/shm that can be written and has room. kIo: none.
  static Result<RunDirectory> make();
  /// In the first of them that other users may enter: with mode 0711, for files that they may read by name. kIo: none.
  static Result<RunDirectory> make_for_others();
  /// In `base`. kIo with the cause.
  static Result<RunDirectory> make_in(const std::string &base);
  RunDirectory(RunDirectory &&other) noexcept : path_(std::move(other.path_)), lock_(std::move(other.lock_)) {
    other.path_.clear();
  }
  RunDirectory &operator=(RunDirectory &&) = delete;
  ~RunDirectory();

  /// Lets other users make folders of their own in it, if this is root.
  void share() const;
  /// Whether what `nessie run` and its servers keep fits in.
  bool has_room() const;
  const std::string &path() const { return path_; }
  std::string file(const std::string &name) const { return path_ + "/" + name; }

 private:
  explicit RunDirectory(std::string path);
  std::string path_;
  Fd lock_;
};

}  // namespace nessie::cli
