// SPDX-License-Identifier: BSD-3-Clause
#include <Trios_threads.h>

#include <sched.h>

#include <algorithm>
#include <utility>

namespace {

int kind_of(int mutex_type) {
  switch (mutex_type) {
    case NTHREAD_MUTEX_RECURSIVE: return PTHREAD_MUTEX_RECURSIVE;
    case NTHREAD_MUTEX_ERRORCHECK: return PTHREAD_MUTEX_ERRORCHECK;
    case NTHREAD_MUTEX_DEFAULT: return PTHREAD_MUTEX_DEFAULT;
    default: return PTHREAD_MUTEX_NORMAL;
  }
}

timespec in_ms(uint64_t timeout_ms) {
  timespec when{};
  ::clock_gettime(CLOCK_MONOTONIC, &when);
  const uint64_t ns = static_cast<uint64_t>(when.tv_nsec) + timeout_ms % 1000 * 1'000'000;
  when.tv_sec += static_cast<time_t>(std::min<uint64_t>(timeout_ms / 1000, 1u << 30) + ns / 1'000'000'000);
  when.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  return when;
}

template <class Change> int64_t change(nthread_counter_t *counter, Change how) {
  ::pthread_mutex_lock(&counter->lock.mutex);
  const int64_t result = how(counter->value);
  ::pthread_mutex_unlock(&counter->lock.mutex);
  return result;
}

}  // namespace

extern "C" {

log_level thread_debug_level = LOG_UNDEFINED;

int nthread_create(nthread_t *thread, const nthread_attr_t *attr, void *(*start_routine)(void *), void *arg) {
  return ::pthread_create(&thread->thread, attr ? &attr->attr : nullptr, start_routine, arg);
}
void nthread_exit(void *retval) { ::pthread_exit(retval); }
int nthread_join(nthread_t thread, void **value_ptr) { return ::pthread_join(thread.thread, value_ptr); }
nthread_id_t nthread_self(void) { return ::pthread_self(); }
void nthread_yield(void) { ::sched_yield(); }

int nthread_lock_init(nthread_lock_t *lock) { return nthread_mutex_init(lock, NTHREAD_MUTEX_NORMAL); }
int nthread_lock_fini(nthread_lock_t *lock) { return ::pthread_mutex_destroy(&lock->mutex); }
int nthread_mutex_init(nthread_mutex_t *mutex, int mutex_type) {
  pthread_mutexattr_t attributes;
  if (const int error = ::pthread_mutexattr_init(&attributes); error != 0) return error;
  int error = ::pthread_mutexattr_settype(&attributes, kind_of(mutex_type));
  if (error == 0) error = ::pthread_mutex_init(&mutex->mutex, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
  return error;
}
int nthread_lock(nthread_lock_t *lock) { return ::pthread_mutex_lock(&lock->mutex); }
int nthread_unlock(nthread_lock_t *lock) { return ::pthread_mutex_unlock(&lock->mutex); }

int nthread_cond_init(nthread_cond_t *cond) { return ::pthread_cond_init(&cond->cond, nullptr); }
int nthread_cond_fini(nthread_cond_t *cond) { return ::pthread_cond_destroy(&cond->cond); }
int nthread_broadcast(nthread_cond_t *cond) { return ::pthread_cond_broadcast(&cond->cond); }
int nthread_signal(nthread_cond_t *cond) { return ::pthread_cond_signal(&cond->cond); }
int nthread_cond_broadcast(nthread_cond_t *cond) { return nthread_broadcast(cond); }
int nthread_cond_signal(nthread_cond_t *cond) { return nthread_signal(cond); }
int nthread_wait(nthread_cond_t *cond, nthread_lock_t *lock) { return ::pthread_cond_wait(&cond->cond, &lock->mutex); }
int nthread_timedwait(nthread_cond_t *cond, nthread_lock_t *lock, uint64_t timeout_ms) {
  const timespec when = in_ms(timeout_ms);
  return ::pthread_cond_clockwait(&cond->cond, &lock->mutex, CLOCK_MONOTONIC, &when);
}
int nthread_cond_wait(nthread_cond_t *cond, nthread_mutex_t *mutex) { return nthread_wait(cond, mutex); }
int nthread_cond_timedwait(nthread_cond_t *cond, nthread_mutex_t *mutex, const struct timespec *abstime) {
  return ::pthread_cond_timedwait(&cond->cond, &mutex->mutex, abstime);
}

int nthread_counter_init(nthread_counter_t *counter) {
  counter->value = 0;
  return nthread_lock_init(&counter->lock);
}
int nthread_counter_fini(nthread_counter_t *counter) { return nthread_lock_fini(&counter->lock); }
int64_t nthread_counter_increment(nthread_counter_t *counter) {
  return change(counter, [](int64_t &value) { return ++value; });
}
int64_t nthread_counter_decrement(nthread_counter_t *counter) {
  return change(counter, [](int64_t &value) { return --value; });
}
int64_t nthread_counter_read(nthread_counter_t *counter) {
  return change(counter, [](int64_t &value) { return value; });
}
int64_t nthread_counter_set(nthread_counter_t *counter, int64_t new_value) {
  return change(counter, [=](int64_t &value) { return std::exchange(value, new_value); });
}

}  // extern "C"
