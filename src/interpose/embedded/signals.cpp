// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/embedded/signals.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

namespace embedded {

namespace {

constexpr std::array kEnding = {SIGTERM, SIGINT, SIGHUP};

int to_thread = -1;  ///< a pipe
pid_t owner = 0;     ///< not a child of fork()

void end_by(int signal) {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  ::kill(::getpid(), signal);
}

void on_signal(int signal) {
  const int error = errno;
  if (::getpid() != owner)
    end_by(signal);
  else
    (void)!::write(to_thread, &signal, sizeof signal);
  errno = error;
}

void listen_to_ending() {
  struct sigaction before {
  }, ours{};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  for (const int signal : kEnding)
    if (::sigaction(signal, nullptr, &before) == 0 && (before.sa_flags & SA_SIGINFO) == 0 &&
        before.sa_handler == SIG_DFL)
      ::sigaction(signal, &ours, nullptr);
}

}  // namespace

bool finish_before_ending(std::function<void()> finish) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  to_thread = ends[1];
  owner = ::getpid();
  const auto wait = [from_handler = ends[0], finish = std::move(finish)] {
    int signal = 0;
    if (::read(from_handler, &signal, sizeof signal) != sizeof signal) return;
    finish();
    end_by(signal);
  };
  try {
    const SignalsHeldBack held;
    std::thread(wait).detach();
  } catch (const std::system_error &) { return false; }
  listen_to_ending();
  return true;
}

}  // namespace embedded
