// SPDX-License-Identifier: BSD-3-Clause
#include "signals.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace nessie::cli {

namespace {

/// Of no use as they may have been inherited: children that end must be waited for; who writes to a reader that is
/// gone, or to the terminal from the background, goes on; SIGTERM always ends the run.
constexpr std::array kTakenOver = {SIGCHLD, SIGPIPE, SIGTTOU, SIGTERM};

bool is_ignored(int number) {
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

Result<Signals> Signals::open() {
  sigset_t held;
  sigemptyset(&held);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    if (number == SIGCHLD || number == SIGTERM || !is_ignored(number)) sigaddset(&held, number);
  }
  Signals signals;
  // Whatever the parent made of them: a child that nobody may wait for, or Ctrl-C that is ignored, would never be
  // noticed.
  for (int number : kTakenOver) signals.take_over(number);
  pthread_sigmask(SIG_BLOCK, &held, &signals.original_mask_);
  signals.fd_ = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals.fd_ < 0) return Error{Code::kIo, "signalfd failed", Scope::kProcess, errno};
  return signals;
}

Signals::Signals(Signals &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)), original_mask_(other.original_mask_), originals_(other.originals_) {}

void Signals::take_over(int number) {
  struct sigaction ours {};
  ours.sa_handler = number == SIGPIPE || number == SIGTTOU ? SIG_IGN : SIG_DFL;
  sigaction(number, &ours, &originals_[static_cast<std::size_t>(number)]);
}

Signals::~Signals() {
  if (fd_ >= 0) close(fd_);
}

std::optional<Signal> Signals::wait(Deadline deadline, int or_readable) {
  std::array<pollfd, 2> events = {pollfd{fd_, POLLIN, 0}, pollfd{or_readable, POLLIN, 0}};
  if (poll(events.data(), events.size(), deadline.poll_timeout_ms()) <= 0) return std::nullopt;
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
  return Signal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

void Signals::restore_original() const {
  for (int number : kTakenOver) sigaction(number, &originals_[static_cast<std::size_t>(number)], nullptr);
  pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
}

}  // namespace nessie::cli
