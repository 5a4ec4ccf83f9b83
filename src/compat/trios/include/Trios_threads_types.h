/* SPDX-License-Identifier: BSD-3-Clause */
/* Trios' names for POSIX threads. */
#ifndef TRIOS_THREADS_TYPES_H
#define TRIOS_THREADS_TYPES_H

#include "Trios_config.h"

#include <pthread.h>
#include <stdint.h>

typedef pthread_t nthread_id_t;
typedef struct nthread_t {
  pthread_t thread;
} nthread_t;
typedef struct nthread_attr_t {
  pthread_attr_t attr;
} nthread_attr_t;
typedef struct nthread_cond_t {
  pthread_cond_t cond;
} nthread_cond_t;
typedef struct nthread_condattr_t {
  pthread_condattr_t condattr;
} nthread_condattr_t;
typedef struct nthread_lock_t {
  pthread_mutex_t mutex;
} nthread_lock_t;
typedef nthread_lock_t nthread_mutex_t; /* its former name */
typedef struct nthread_counter_t {
  nthread_lock_t lock;
  int64_t value;
} nthread_counter_t;

enum { NTHREAD_MUTEX_NORMAL, NTHREAD_MUTEX_RECURSIVE, NTHREAD_MUTEX_ERRORCHECK, NTHREAD_MUTEX_DEFAULT };

#define NTHREAD_LOCK_INITIALIZER \
  { PTHREAD_MUTEX_INITIALIZER }
#define NTHREAD_MUTEX_INITIALIZER NTHREAD_LOCK_INITIALIZER
#define NTHREAD_COND_INITIALIZER \
  { PTHREAD_COND_INITIALIZER }
#define NTHREAD_COUNTER_INITIALIZER \
  { NTHREAD_LOCK_INITIALIZER, 0 }

#endif
