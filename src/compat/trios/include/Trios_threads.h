/* SPDX-License-Identifier: BSD-3-Clause */
/* Trios' threads. Functions return 0 or an errno. */
#ifndef TRIOS_THREADS_H
#define TRIOS_THREADS_H

#include "Trios_config.h"
#include "Trios_logger.h"
#include "Trios_threads_types.h"

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

extern log_level thread_debug_level;

int nthread_create(nthread_t *thread, const nthread_attr_t *attr, void *(*start_routine)(void *), void *arg);
void nthread_exit(void *retval);
int nthread_join(nthread_t thread, void **value_ptr);
nthread_id_t nthread_self(void);
void nthread_yield(void);

int nthread_lock_init(nthread_lock_t *lock);
int nthread_lock_fini(nthread_lock_t *lock);
int nthread_mutex_init(nthread_mutex_t *mutex, int mutex_type);
int nthread_lock(nthread_lock_t *lock);
int nthread_unlock(nthread_lock_t *lock);

int nthread_cond_init(nthread_cond_t *cond);
int nthread_cond_fini(nthread_cond_t *cond);
int nthread_broadcast(nthread_cond_t *cond);
int nthread_signal(nthread_cond_t *cond);
int nthread_cond_broadcast(nthread_cond_t *cond);
int nthread_cond_signal(nthread_cond_t *cond);
int nthread_wait(nthread_cond_t *cond, nthread_lock_t *lock);
int nthread_timedwait(nthread_cond_t *cond, nthread_lock_t *lock, uint64_t timeout_ms);
int nthread_cond_wait(nthread_cond_t *cond, nthread_mutex_t *mutex);
int nthread_cond_timedwait(nthread_cond_t *cond, nthread_mutex_t *mutex, const struct timespec *abstime);

/* The value after the change, and before it for _set. */
int nthread_counter_init(nthread_counter_t *counter);
int nthread_counter_fini(nthread_counter_t *counter);
int64_t nthread_counter_increment(nthread_counter_t *counter);
int64_t nthread_counter_decrement(nthread_counter_t *counter);
int64_t nthread_counter_read(nthread_counter_t *counter);
int64_t nthread_counter_set(nthread_counter_t *counter, int64_t new_value);

#ifdef __cplusplus
}
#endif
#endif
