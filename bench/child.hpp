// SPDX-License-Identifier: BSD-3-Clause
// Child processes of a benchmark: programs that are run and listened to, and partners forked from ourselves.
// Whatever happens, no child outlives its parent, and every wait has a limit.
#pragma once

#include <nessie/result.hpp>

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace bench {

struct ProgramResult {
  std::string output;  ///< what it wrote to stdout
  double wall_s = 0;
  double cpu_s = 0;                                   ///< its own, and that of the processes that it waited for
  std::chrono::system_clock::time_point last_output;  ///< when the last of it came
};

/// Runs a program and returns its standard output. kNotFound: it cannot be started. kIo: it failed; the message holds
/// the command, how it ended and the last of what it wrote. kTimedOut: it was ended after `limit`.
nessie::Result<ProgramResult> run_program(const std::vector<std::string> &command, std::chrono::seconds limit,
                                          const std::vector<std::string> &environment = {});

/// What a forked process does to become a program that writes to the descriptors `out` and `err`.
[[noreturn]] void exec_program(const std::vector<std::string> &command, const std::vector<std::string> &environment,
                               int out, int err);

/// The command that starts `processes` processes of a program under Open MPI, with options for mpiexec.
std::vector<std::string> mpiexec(int processes, std::vector<std::string> program,
                                 std::vector<std::string> options = {});

/// Its options for processes that bind themselves, over the network that they would choose, or over TCP. They poll, if
/// there is a core for each.
std::vector<std::string> mpi_options(int processes, bool over_tcp = false);

/// Whether a program of that name can be started.
bool on_path(const char *program);

/// A program of Nessie's, by its name: in our own folder, or, when installed, in bin.
std::string sibling(const std::string &name);

/// A process forked from this one that runs `body`, with a pipe in each direction.
class Partner {
 public:
  /// `body` gets the descriptors to read from and to write to; its return value is the exit code.
  explicit Partner(const std::function<int(int from_parent, int to_parent)> &body);
  /// Closes the pipes; ends the partner if it does not end by itself within some seconds.
  ~Partner();
  Partner(const Partner &) = delete;
  Partner &operator=(const Partner &) = delete;

  pid_t pid() const { return pid_; }
  enum class End { kWell, kBadly, kNotYet };
  /// How its body ended, within `limit`: with exit code 0, or not. For a body that writes nothing.
  End wait(std::chrono::milliseconds limit);
  /// False if the partner is gone, or nothing came for half a minute.
  bool read(std::span<std::byte> bytes);
  bool write(std::span<const std::byte> bytes);
  template <class T> bool read_value(T &value) { return read(std::as_writable_bytes(std::span(&value, 1))); }
  template <class T> bool write_value(const T &value) { return write(std::as_bytes(std::span(&value, 1))); }

 private:
  pid_t pid_ = -1;
  int from_partner_ = -1, to_partner_ = -1;
};

/// For a partner's body: all of `bytes`, or false.
bool read_all(int descriptor, std::span<std::byte> bytes);
bool write_all(int descriptor, std::span<const std::byte> bytes);

}  // namespace bench
