// SPDX-License-Identifier: BSD-3-Clause
// The process by which other programs follow the files of a run while they are written: nessie-streams, beside the
// staging servers.
#pragma once

#include "signals.hpp"

#include <base/clock.hpp>
#include <base/fd.hpp>
#include <nessie/result.hpp>

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace nessie::cli {

struct FileStreamsOptions {
  std::string program;                    ///< nessie-streams
  std::string pattern;                    ///< which files: streams.files
  std::vector<std::string> staging_urls;  ///< of the run's servers,
  std::string credential;                 ///< and theirs
};

class FileStreams {
 public:
  /// Starts it, and waits a while until other programs find it: so the first ones do, too, of a program that is soon
  /// done. Errors as spawn().
  static Result<FileStreams> start(const FileStreamsOptions &options, const Signals &signals);
  bool owns(pid_t pid) const { return pid == pid_; }
  /// Takes note of a child that was reaped, if it is this. True: it is, and was not told to end.
  bool note_exit(pid_t pid);
  bool is_running() const { return pid_ > 0; }
  /// The run's files are complete. Returns when readers of every step have had them all, or `linger` is over, or at
  /// once if that is not wanted any more. `turn` is called again and again meanwhile.
  void end(std::chrono::milliseconds linger, const std::function<void()> &turn,
           const std::function<bool()> &has_given_up);

 private:
  FileStreams(pid_t pid, Fd said) : pid_(pid), said_(std::move(said)) {}
  pid_t pid_;
  Fd said_;  ///< what it prints: where it is
  bool is_ending_ = false;
};

}  // namespace nessie::cli
