// SPDX-License-Identifier: BSD-3-Clause
// Waits for what ends the process from outside: the death of whoever started it, or else SIGTERM and SIGINT.
#pragma once

#include <base/fd.hpp>
#include <nessie/result.hpp>

#include <functional>
#include <memory>
#include <thread>

#include <unistd.h>

namespace nessied {

class Watcher {
 public:
  /// After prepare_signals(). `end` is called on the watcher's thread, once for each signal, and once at the end of
  /// file of `parent_fd` (-1: of nothing). Signals count only when that is over, or this process's parent is gone:
  /// batch systems send them to all processes of a job, and the program beside which this one serves may write a last
  /// checkpoint then. kInvalidArgument: that is no open descriptor. kNoMemory: there are no descriptors left to watch
  /// with; without them nothing but SIGKILL would end the process.
  static nessie::Result<std::unique_ptr<Watcher>> start(int parent_fd, std::function<void()> end);
  ~Watcher();
  Watcher(const Watcher &) = delete;

 private:
  Watcher(int parent_fd, std::function<void()> end);
  void watch();
  const int parent_fd_;
  const pid_t parent_ = ::getppid();
  const nessie::Fd signal_fd_, stop_fd_;
  std::function<void()> end_;
  std::thread thread_;
};

/// Keeps SIGTERM and SIGINT for the watcher, from this thread and those that it starts; ignores SIGHUP, SIGPIPE, and
/// SIGXFSZ (a file grown too large is an error of the write). Where `has_parent`, SIGQUIT, SIGUSR1 and SIGUSR2 too.
void prepare_signals(bool has_parent);

}  // namespace nessied
