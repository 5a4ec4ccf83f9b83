// SPDX-License-Identifier: BSD-3-Clause
// Waits for what ends the server from outside: SIGTERM, or the death of whoever started it.
#pragma once

#include <functional>
#include <thread>

namespace nessied {

class Watcher {
 public:
  /// SIGTERM must be blocked in all threads. `end` is called on the watcher's thread, at most once for each reason.
  Watcher(int parent_fd, std::function<void()> end);
  ~Watcher();
  Watcher(const Watcher &) = delete;

 private:
  void watch();
  int parent_fd_, signal_fd_, stop_fd_;
  std::function<void()> end_;
  std::thread thread_;
};

/// Blocks SIGTERM for this thread and those that it starts; ignores SIGINT (Ctrl-C is for the program), SIGPIPE, and
/// SIGXFSZ (a file grown too large is an error of the write).
void prepare_signals();

}  // namespace nessied
