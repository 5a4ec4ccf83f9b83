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

/// Whether who wakes the calling thread keeps the core until its time is up (SCHED_BATCH of sched(7)), or the scheduler
/// decides. A thread that has another policy than the usual one keeps that. It costs a system call when it changes.
inline void be_woken_in_turn(bool wanted) {
  static thread_local bool is_so = false;  // by us
  if (wanted == is_so) return;
  const sched_param same{};
  if (wanted && ::sched_getscheduler(0) != SCHED_OTHER) return;
  is_so = ::sched_setscheduler(0, wanted ? SCHED_BATCH : SCHED_OTHER, &same) == 0 && wanted;
}

}  // namespace nessie
