// SPDX-License-Identifier: BSD-3-Clause
// Waits for what ends the process from outside: SIGTERM, SIGINT, or the death of whoever started it.
#pragma once

#include <base/fd.hpp>
#include <nessie/result.hpp>

#include <functional>
#include <memory>
#include <thread>

namespace nessied {

class Watcher {
 public:
  /// After prepare_signals(). `end` is called on the watcher's thread, once for each signal, and once at the end of
  /// file of `parent_fd` (-1: of nothing). kInvalidArgument: that is no open descriptor. kNoMemory: there are no
  /// descriptors left to watch with; without them nothing but SIGKILL would end the process.
  static nessie::Result<std::unique_ptr<Watcher>> start(int parent_fd, std::function<void()> end);
  ~Watcher();
  Watcher(const Watcher &) = delete;

 private:
  Watcher(int parent_fd, std::function<void()> end);
  void watch();
  const int parent_fd_;
  const nessie::Fd signal_fd_, stop_fd_;
  std::function<void()> end_;
  std::thread thread_;
};

/// Keeps SIGTERM and SIGINT for the watcher, from this thread and those that it starts; ignores SIGHUP, SIGPIPE,
/// SIGXFSZ (a file grown too large is an error of the write), and SIGINT where `ignores_interrupts`: Ctrl-C is for the
/// program that `nessie run` runs beside.
void prepare_signals(bool ignores_interrupts);

}  // namespace nessied
