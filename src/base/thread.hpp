// SPDX-License-Identifier: BSD-3-Clause
// Threads of our own within somebody's program.
#pragma once

#include <pthread.h>
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

/// How often the calling thread had to leave its core to others: by sched_yield(), or because its time was up.
inline long departures() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace nessie
