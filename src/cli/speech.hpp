// SPDX-License-Identifier: BSD-3-Clause
// What commands say, and what `nessie run` writes: its streams may be closed, full, or have no reader any more, which
// is no reason to fail, nor to wait.
#pragma once

#include <nessie/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace nessie::cli {

/// "1 file", "2 files", for `thing` "file".
std::string counted(std::uint64_t number, std::string_view thing);

/// To stderr, as it is. What cannot be written is dropped.
void write_to_stderr(std::string_view text);

/// "nessie: TEXT" and a line end.
void say(std::string_view text);

/// The last line of a terminal, said anew again and again: "nessie: TEXT". Nothing where stderr is none, or if quiet.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  void show(std::string_view text);
  /// Before anything else is said.
  void hide();

 private:
  const bool wanted_;
  bool shown_ = false;
};

/// "nessie COMMAND: WHY", and a line end. Returns the exit code of a command that failed.
int say_failure(std::string_view command, std::string_view why);

/// To a file, which is made, or replaced; or to a device, or a pipe that somebody reads. kIo, with the cause.
Status write_output(const std::string &path, std::string_view text);

/// Whether the file is what the descriptor is open for: /dev/stdout, say, for 1.
bool is_stream(const std::string &path, int fd);

}  // namespace nessie::cli
