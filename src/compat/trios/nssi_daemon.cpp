// SPDX-License-Identifier: BSD-3-Clause
#include <compat/trios/nssi_paper.hpp>

#include <compat/trios/nnti.hpp>

#include <Trios_nssi_server.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace {

/// A child has none of its parent's threads and connections.
bool is_a_transport_open() {
  for (int id = NSSI_RPC_NULL + 1; id < NSSI_RPC_COUNT; ++id)
    if (nssi::trios::paper::is_open(id) || nnti::trios::find_transport(id)) return true;
  return false;
}

void become_daemon(int nowhere) {
  ::setsid();
  ::umask(0);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
}

}  // namespace

void nssi_daemonize(void) {
  if (is_a_transport_open()) {
    log_error(rpc_debug_level, "not a daemon: a transport is open; call nssi_daemonize() before nssi_rpc_init()");
    return;
  }
  const int nowhere = ::open("/dev/null", O_RDWR);
  std::fflush(nullptr);  // or both write it
  const pid_t child = nowhere >= 0 ? ::fork() : -1;
  if (child > 0) ::_exit(0);
  if (child == 0)
    become_daemon(nowhere);
  else
    log_error(rpc_debug_level, "not a daemon: %s", std::strerror(errno));
  if (nowhere > STDERR_FILENO) ::close(nowhere);
}
