// SPDX-License-Identifier: BSD-3-Clause
// The process's signal handlers.
#pragma once

#include <signal.h>

#include <array>

namespace nessie {

/// The handlers of all signals, as they were when it was made. Libraries whose constructors install some, as those that
/// libfabric and UCX bring along do, are loaded between that and restore(): the program's own go on to be called, and a
/// signal without one ends it as ever. What other threads install meanwhile is lost.
class SignalHandlers {
 public:
  SignalHandlers() {
    for (int signal = 1; signal < NSIG; ++signal) known_[signal] = ::sigaction(signal, nullptr, &actions_[signal]) == 0;
  }
  void restore() const {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction now {};
      if (!known_[signal] || ::sigaction(signal, nullptr, &now) != 0) continue;
      if (now.sa_handler != actions_[signal].sa_handler) ::sigaction(signal, &actions_[signal], nullptr);
    }
  }

 private:
  std::array<struct sigaction, NSIG> actions_{};
  std::array<bool, NSIG> known_{};
};

}  // namespace nessie
