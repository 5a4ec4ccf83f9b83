// SPDX-License-Identifier: BSD-3-Clause
// Signals as events of a poll loop.
#pragma once

#include <base/clock.hpp>
#include <nessie/result.hpp>

#include <signal.h>

#include <array>
#include <optional>

namespace nessie::cli {

struct Signal {
  int number = 0;
  bool from_terminal = false;  ///< Ctrl-C, Ctrl-\: the whole foreground process group has it already
};

/// Holds back SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGCHLD, but those that the parent had ignored
/// (nohup), and ignores SIGPIPE and SIGTTOU, from open() to the end of the process. One per process; to be opened
/// before the first thread and the first child.
class Signals {
 public:
  static Result<Signals> open();
  Signals(Signals &&other) noexcept;
  Signals &operator=(Signals &&) = delete;
  ~Signals();

  /// Waits for a signal, or until there is something to read from the descriptor, if any, or until the deadline.
  std::optional<Signal> wait(Deadline deadline, int or_readable = -1);
  /// In a child, before exec: puts back what the process was started with. Async-signal-safe.
  void restore_original() const;

 private:
  Signals() = default;
  void take_over(int number);
  int fd_ = -1;
  sigset_t original_mask_{};
  std::array<struct sigaction, 32> originals_{};  ///< by number
};

}  // namespace nessie::cli
