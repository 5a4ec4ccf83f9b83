/* SPDX-License-Identifier: BSD-3-Clause */
/* The same work by several threads. */
#ifndef NESSIE_SETUPS_IN_THREADS_H
#define NESSIE_SETUPS_IN_THREADS_H

#include <pthread.h>
#include <stddef.h>

enum { kMostThreads = 64 };

/* Has `work` done for each of `count` arguments of `bytes` each: in a thread each, or `serially`. Waits for all. */
static void in_threads(int count, void *(*work)(void *), void *arguments, size_t bytes, int serially) {
  pthread_t ids[kMostThreads];
  for (int i = 0; i < count; i++) {
    void *argument = (char *)arguments + (size_t)i * bytes;
    if (serially)
      work(argument);
    else
      pthread_create(&ids[i], NULL, work, argument);
  }
  for (int i = 0; i < count && !serially; i++) pthread_join(ids[i], NULL);
}

#endif
