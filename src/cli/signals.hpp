// SPDX-License-Identifier: BSD-3-Clause
// Signals as events of a poll loop.
#pragma once

#include <base/clock.hpp>
#include <nessie/result.hpp>

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <vector>

namespace nessie::cli {

struct Signal {
  int number = 0;
  bool from_terminal = false;  ///< Ctrl-C, Ctrl-\: the whole foreground process group has it already
  bool repeated = false;       ///< its sender has sent it just before: timeout(1) does, to us and to our process group
  bool was_ignored = false;    ///< when this process began (nohup): it is the program's affair, if anybody's
};

/// Whether a program that has not said otherwise ends when it gets the signal, or stops.
bool ends_by_default(int number);
bool stops_by_default(int number);

/// Whether it is how users, terminals and batch systems ask a process to end.
bool asks_to_end(int number);

/// Holds back all signals that can be, and raises none by what this process writes, from open() to the end of the
/// process. One per process; to be opened before the first thread and the first child.
class Signals {
 public:
  static Result<Signals> open();
  Signals(Signals &&other) noexcept;
  Signals &operator=(Signals &&) = delete;
  ~Signals();

  /// Waits for a signal, or until there is something to read from one of the descriptors (-1: none), or until the
  /// deadline.
  std::optional<Signal> wait(Deadline deadline, const std::vector<int> &or_readable = {});
  /// In a child, before exec: puts back what the process was started with. Async-signal-safe.
  void restore_original() const;
  /// Stops this process as the signal would, until it is continued.
  void stop(int number) const;

 private:
  Signals() = default;
  void take_over(int number);
  bool is_repeated(int number, pid_t sender);
  int fd_ = -1;
  sigset_t ignored_{};
  int last_number_ = 0;  ///< of the signal that another one may repeat, until the deadline
  pid_t last_sender_ = 0;
  Deadline last_until_ = Deadline::now();
  sigset_t original_mask_{};
  std::array<struct sigaction, 32> originals_{};  ///< by number
};

}  // namespace nessie::cli
