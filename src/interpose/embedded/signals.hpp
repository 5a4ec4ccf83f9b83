// SPDX-License-Identifier: BSD-3-Clause
// What signals have to do with servers in a program's process: their threads take none, and one that ends the process
// waits for them.
#pragma once

#include <signal.h>

#include <functional>

namespace embedded {

/// The threads that begin meanwhile take no signals: those are for the program's.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeldBack(const SignalsHeldBack &) = delete;

 private:
  sigset_t before_;
};

/// Where SIGTERM, SIGINT or SIGHUP would end the process, `finish` is called first, once, on a thread of its own; the
/// program goes on meanwhile. A launcher that ends its job sends SIGTERM some time before SIGKILL. A handler that the
/// program installs replaces this. False: there is no descriptor left, or no thread.
bool finish_before_ending(std::function<void()> finish);

}  // namespace embedded
