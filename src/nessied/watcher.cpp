// SPDX-License-Identifier: BSD-3-Clause
#include "watcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace nessied {

using nessie::Code;
using nessie::Error;

namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT}) sigaddset(&set, number);
  return set;
}

int listen_to(const sigset_t &signals) { return ::signalfd(-1, &signals, SFD_CLOEXEC); }

/// True at the end of file; drops what was read.
bool at_end(int fd) {
  std::array<char, 256> ignored{};
  const auto got = ::read(fd, ignored.data(), ignored.size());
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace

void prepare_signals(bool has_parent) {
  const auto set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, SIG_DFL);
  for (const int number : {SIGQUIT, SIGUSR1, SIGUSR2}) std::signal(number, has_parent ? SIG_IGN : SIG_DFL);
  std::signal(SIGHUP, SIG_IGN);  // until the runtime listens to it, and after
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

Watcher::Watcher(int parent_fd, std::function<void()> end)
    : parent_fd_(parent_fd),
      signal_fd_(listen_to(ending_signals())),
      stop_fd_(::eventfd(0, EFD_CLOEXEC)),
      end_(std::move(end)) {}

nessie::Result<std::unique_ptr<Watcher>> Watcher::start(int parent_fd, std::function<void()> end) {
  if (parent_fd >= 0 && ::fcntl(parent_fd, F_GETFD) < 0)
    return Error{Code::kInvalidArgument, fmt::format("--parent {}: {}", parent_fd, std::strerror(errno))};
  std::unique_ptr<Watcher> watcher(new Watcher(parent_fd, std::move(end)));
  if (!watcher->signal_fd_ || !watcher->stop_fd_)
    return Error{Code::kNoMemory, fmt::format("cannot listen to signals: {}", std::strerror(errno))};
  watcher->thread_ = std::thread([it = watcher.get()] { it->watch(); });
  return watcher;
}

Watcher::~Watcher() {
  const std::uint64_t one = 1;
  (void)!::write(stop_fd_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void Watcher::watch() {
  std::array<pollfd, 3> fds = {pollfd{stop_fd_.get(), POLLIN, 0}, pollfd{signal_fd_.get(), POLLIN, 0},
                               pollfd{parent_fd_, POLLIN, 0}};
  for (;;) {
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno != EINTR) return;
      continue;  // nothing is known of the descriptors then
    }
    if (fds[0].revents != 0) return;
    signalfd_siginfo info{};
    const bool has_parent = fds[2].fd >= 0 && ::getppid() == parent_;
    if (fds[1].revents != 0 && ::read(signal_fd_.get(), &info, sizeof info) == sizeof info && !has_parent) end_();
    if (fds[2].revents != 0 && at_end(parent_fd_)) {
      fds[2].fd = -1;
      end_();
    }
  }
}

}  // namespace nessied
