// SPDX-License-Identifier: BSD-3-Clause
#include "signals.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace nessie::cli {

namespace {

/// Of no use as they may have been inherited: children that end must be waited for; who writes to a reader that is
/// gone, to a file at the limit on sizes, or to the terminal from the background, goes on; SIGTERM always ends the run.
constexpr std::array kTakenOver = {SIGCHLD, SIGPIPE, SIGTTOU, SIGTERM, SIGXFSZ};
constexpr std::array kOfTheTerminal = {SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGWINCH};
constexpr auto kRepetition = std::chrono::seconds(1);

template <std::size_t N> bool is_one_of(const std::array<int, N> &numbers, int number) {
  return std::ranges::find(numbers, number) != numbers.end();
}

bool is_ignored(int number) {
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

bool stops_by_default(int number) { return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU; }

bool ends_by_default(int number) {
  return !stops_by_default(number) && !is_one_of(std::array{SIGCHLD, SIGCONT, SIGURG, SIGWINCH}, number);
}

bool asks_to_end(int number) { return number == SIGTERM || number == SIGINT || number == SIGHUP; }

Result<Signals> Signals::open() {
  sigset_t held;
  sigfillset(&held);
  Signals signals;
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGTERM && is_ignored(number)) sigaddset(&signals.ignored_, number);
  }
  // Whatever the parent made of them: a child that nobody may wait for, or Ctrl-C that is ignored, would never be
  // noticed.
  for (int number : kTakenOver) signals.take_over(number);
  pthread_sigmask(SIG_BLOCK, &held, &signals.original_mask_);
  signals.fd_ = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals.fd_ < 0) return Error{Code::kIo, "signalfd failed", Scope::kProcess, errno};
  return signals;
}

Signals::Signals(Signals &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      ignored_(other.ignored_),
      original_mask_(other.original_mask_),
      originals_(other.originals_) {}

void Signals::take_over(int number) {
  struct sigaction ours {};
  ours.sa_handler = number == SIGCHLD || number == SIGTERM ? SIG_DFL : SIG_IGN;
  sigaction(number, &ours, &originals_[static_cast<std::size_t>(number)]);
}

Signals::~Signals() {
  if (fd_ >= 0) close(fd_);
}

std::optional<Signal> Signals::wait(Deadline deadline, const std::vector<int> &or_readable) {
  std::vector<pollfd> events = {{fd_, POLLIN, 0}};
  for (const int fd : or_readable) events.push_back({fd, POLLIN, 0});
  if (poll(events.data(), events.size(), deadline.poll_timeout_ms()) <= 0) return std::nullopt;
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
  const int number = static_cast<int>(info.ssi_signo), sender = static_cast<pid_t>(info.ssi_pid);
  if (sender == getpid() && (number == SIGPIPE || number == SIGXFSZ)) return std::nullopt;  // of what it writes
  const bool from_terminal = info.ssi_code == SI_KERNEL && is_one_of(kOfTheTerminal, number);
  return Signal{number, from_terminal, !from_terminal && is_repeated(number, sender),
                sigismember(&ignored_, number) == 1};
}

bool Signals::is_repeated(int number, pid_t sender) {
  if (number == last_number_ && sender == last_sender_ && !last_until_.passed()) return true;
  last_number_ = number, last_sender_ = sender, last_until_ = Deadline::in(kRepetition);
  return false;
}

// By default, and not by SIGSTOP: the system knows when nobody would ever continue it.
void Signals::stop(int number) const {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  pthread_sigmask(SIG_BLOCK, &only, nullptr);
}

void Signals::restore_original() const {
  for (int number : kTakenOver) sigaction(number, &originals_[static_cast<std::size_t>(number)], nullptr);
  pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
}

}  // namespace nessie::cli
