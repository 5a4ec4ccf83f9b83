/* SPDX-License-Identifier: BSD-3-Clause */
/* What we say in somebody's program, or a server: it may neither wait, nor end, because nobody hears it. C and C++. */
#ifndef NESSIE_BASE_SAY_H
#define NESSIE_BASE_SAY_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { NESSIE_SAY_PATIENCE_MS = 100 }; /* with a pipe that nobody empties */

/* A pipe that has room has it for PIPE_BUF bytes; who writes more at once may have to wait. */
static inline void nessie_write_what_fits(int fd, const char *text, size_t size) {
  struct pollfd room = {fd, POLLOUT, 0};
  ssize_t written = 0;
  while (size > 0 && poll(&room, 1, NESSIE_SAY_PATIENCE_MS) > 0) {
    written = write(fd, text, size < PIPE_BUF ? size : PIPE_BUF);
    if (written <= 0) return;
    text += written;
    size -= (size_t)written;
  }
}

/* Takes back a signal that is held back, and that what this thread has just done may have raised: SIGPIPE without a
 * reader, SIGXFSZ at the limit on the size of files. One that was pending before stays. */
static inline void nessie_take_back(int signal, const sigset_t *pending_before) {
  sigset_t one;
  const struct timespec no_time = {0, 0};
  sigemptyset(&one);
  sigaddset(&one, signal);
  if (!sigismember(pending_before, signal)) (void)sigtimedwait(&one, NULL, &no_time);
}

/* Writes the text to the descriptor, if any; what cannot be written soon is dropped. */
static inline void nessie_say(int fd, const char *text, size_t size) {
  const int error = errno;
  sigset_t all, mask, pending;
  if (fd < 0) return;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &mask);
  sigpending(&pending);
  nessie_write_what_fits(fd, text, size);
  nessie_take_back(SIGPIPE, &pending);
  nessie_take_back(SIGXFSZ, &pending);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  errno = error;
}

#endif
