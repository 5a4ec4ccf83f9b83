/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded: a wall clock that jumps by hours and years, back and forth, every twentieth of a second. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t jump(void) {
  static const time_t jumps[] = {0, 5 * 3600, -3 * 3600, 3 * 365 * 86400, -86400};
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  const long twentieths = now.tv_sec * 20 + now.tv_nsec / 50000000;
  return jumps[twentieths % 5];
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  const long error = syscall(SYS_clock_gettime, clock, now);
  if (error == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jump();
  return (int)error;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  (void)zone;
  const int error = clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return error;
}

time_t time(time_t *now) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now != NULL) *now = exact.tv_sec;
  return exact.tv_sec;
}
