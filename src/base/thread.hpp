// SPDX-License-Identifier: BSD-3-Clause
// Threads of our own within somebody's program.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <system_error>
#include <thread>
#include <utility>

namespace nessie {

/// A thread that gets no signals: the process's are for its own threads. Not joinable: the system has no more threads.
template <class Run> std::thread start_thread(Run &&run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::forward<Run>(run));
  } catch (const std::system_error &) {
    // as it was made
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

/// Between two looks at what another thread is about to write.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// How often the calling thread had to leave its core to others: by sched_yield(), or because its time was up.
inline long departures() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

/// For a scope in which the calling thread sleeps: who wakes it keeps the core until its time is up (SCHED_BATCH of
/// sched(7)). A thread that has another policy than the usual one keeps that.
class WokenInTurn {
 public:
  explicit WokenInTurn(bool wanted) : changed_(wanted && ::sched_getscheduler(0) == SCHED_OTHER && set(SCHED_BATCH)) {}
  ~WokenInTurn() {
    if (changed_) set(SCHED_OTHER);
  }
  WokenInTurn(const WokenInTurn &) = delete;
  WokenInTurn &operator=(const WokenInTurn &) = delete;

 private:
  static bool set(int policy) {
    const sched_param same{};
    return ::sched_setscheduler(0, policy, &same) == 0;
  }
  const bool changed_;
};

}  // namespace nessie
