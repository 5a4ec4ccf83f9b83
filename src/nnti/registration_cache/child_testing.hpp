// SPDX-License-Identifier: BSD-3-Clause
// For tests: what becomes of registered memory in a forked child.
#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace nnti::test {

/// A forked child, and the end of a pipe that says when it has ended.
struct ForkedChild {
  pid_t process = -1;
  int life = -1;
};

/// Runs `check` in a child, and exits with what it returns.
template <class Check> ForkedChild fork_child(Check check) {
  int life[2];
  if (::pipe(life) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(life[0]);
    ::_exit(check());
  }
  ::close(life[1]);
  return {child, life[0]};
}

/// The child's exit code, or -1 if it ends otherwise or not within a minute.
inline int reap(const ForkedChild &child) {
  if (child.process < 0) return -1;
  pollfd ended{child.life, POLLIN, 0};
  if (::poll(&ended, 1, 60'000) != 1) ::kill(child.process, SIGKILL);
  ::close(child.life);
  int status = 0;
  ::waitpid(child.process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace nnti::test
