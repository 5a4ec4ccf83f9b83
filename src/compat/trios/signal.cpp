// SPDX-License-Identifier: BSD-3-Clause
#include <Trios_signal.h>

#include <signal.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<bool> leave{false}, catches{false};

extern "C" void on_signal(int) { leave.store(true); }

}  // namespace

namespace nnti::trios {
/// Whether a wait must look for signals now and then.
bool catches_signals() { return catches.load(std::memory_order_relaxed); }
}  // namespace nnti::trios

extern "C" {

int trios_install_sighandler(void) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGHUP, SIGTERM, SIGABRT})
    if (::sigaction(signal, &action, nullptr) != 0) return errno;
  catches.store(true);
  return 0;
}

int trios_exit_now(void) { return leave.load(); }

void trios_abort(void) {
  catches.store(true);
  leave.store(true);
}

}  // extern "C"
