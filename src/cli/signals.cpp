// SPDX-License-Identifier: BSD-3-Clause
#include "signals.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace nessie::cli {

Result<Signals> Signals::open() {
  sigset_t held;
  sigemptyset(&held);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&held, number);
  Signals signals;
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &signals.original_pipe_);
  pthread_sigmask(SIG_BLOCK, &held, &signals.original_mask_);
  signals.fd_ = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals.fd_ < 0) return Error{Code::kIo, "signalfd failed", Scope::kProcess, errno};
  return signals;
}

Signals::Signals(Signals &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)), original_mask_(other.original_mask_), original_pipe_(other.original_pipe_) {}

Signals::~Signals() {
  if (fd_ >= 0) close(fd_);
}

std::optional<Signal> Signals::wait(Deadline deadline) {
  pollfd event{fd_, POLLIN, 0};
  if (poll(&event, 1, deadline.poll_timeout_ms()) <= 0) return std::nullopt;
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
  return Signal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

void Signals::restore_original() const {
  sigaction(SIGPIPE, &original_pipe_, nullptr);
  pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
}

}  // namespace nessie::cli
