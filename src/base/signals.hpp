// SPDX-License-Identifier: BSD-3-Clause
// The process's signal handlers.
#pragma once

#include <signal.h>

#include <array>

namespace nessie {

/// While one lives, libraries are loaded whose constructors install signal handlers, as those that libfabric and UCX
/// bring along do. When it ends, the handlers are again what they were: the program's own go on to be called, and a
/// signal without one ends it as ever. A signal that comes to this thread meanwhile waits until then, so that none is
/// lost to a handler of the library. Of other threads that cannot be said: what they install meanwhile is lost, and the
/// signals that come to them go to whoever has a handler then.
class SignalHandlersKept {
 public:
  SignalHandlersKept() {
    sigset_t all;
    ::sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) ::sigdelset(&all, fault);
    ::pthread_sigmask(SIG_SETMASK, &all, &mask_);
    for (int signal = 1; signal < NSIG; ++signal) known_[signal] = ::sigaction(signal, nullptr, &actions_[signal]) == 0;
  }
  ~SignalHandlersKept() {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction now {};
      if (!known_[signal] || ::sigaction(signal, nullptr, &now) != 0) continue;
      if (now.sa_handler != actions_[signal].sa_handler) ::sigaction(signal, &actions_[signal], nullptr);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  SignalHandlersKept(const SignalHandlersKept &) = delete;
  SignalHandlersKept &operator=(const SignalHandlersKept &) = delete;

 private:
  std::array<struct sigaction, NSIG> actions_{};
  std::array<bool, NSIG> known_{};
  sigset_t mask_{};
};

}  // namespace nessie
