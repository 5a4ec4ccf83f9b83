// SPDX-License-Identifier: BSD-3-Clause
// Child processes.
#pragma once

#include "environment.hpp"
#include "signals.hpp"

#include <nessie/result.hpp>

#include <sys/types.h>

#include <string>
#include <vector>

namespace nessie::cli {

struct SpawnOptions {
  std::vector<std::string> command;  ///< looked for in PATH unless it holds a '/'
  Environment environment;
  bool own_process_group = false;                     ///< out of reach of the terminal's Ctrl-C
  int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;  ///< -1: inherited
  bool stdout_to_stderr = false;
  std::vector<int> cores;  ///< hardware threads to run on, as far as this process may; empty: as this process
  int death_signal = 0;    ///< sent to the child if this process dies first
};

/// Starts a program. When it returns ok, the program was found and is running. kNotFound, kRefused (not executable),
/// kIo: with errno as cause.
Result<pid_t> spawn(SpawnOptions options, const Signals &signals);
/// The same, of a process that treats signals as it was started to.
Result<pid_t> spawn(SpawnOptions options);
/// The child's wait status, once it has ended.
int await_end(pid_t child);

/// What a program prints on stdout and stderr until both have ended, and it, too; kTimedOut: it was ended at the
/// deadline. Otherwise errors as spawn(). `signals` as there; null: this process treats them as it was started to.
Result<std::string> output_of(SpawnOptions options, Deadline deadline, const Signals *signals);

/// As a shell says it: the exit status, or 128 + the signal's number.
int exit_code_of(int wait_status);
/// "exited with 3", "was killed by signal 9 (Killed)".
std::string describe_wait_status(int wait_status);

/// All that /proc shows.
std::vector<pid_t> processes();
/// As the kernel calls it: 15 letters at most of its file's name. Empty: it has ended.
std::string command_name(pid_t pid);
/// The processes whose parent this process is, or has become because theirs died (see become_reaper).
std::vector<pid_t> children();
/// Whether it is a process of the run that has this credential: `nessie run` gave it to it, or to who started it.
bool carries_credential(pid_t pid, const std::string &credential);
/// Holds stdin and stdout open no longer, as somebody may be waiting for their end.
void let_go_of_streams();
/// Makes this process the parent of all of its descendants whose own parent dies.
void become_reaper();

}  // namespace nessie::cli
