/* SPDX-License-Identifier: BSD-3-Clause */
/* A library whose constructor has a thread open a file and waits for it, while the dynamic linker is locked. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static void *open_one(void *unused) {
  close(open("/dev/null", O_RDONLY));
  return unused;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, open_one, NULL) == 0) pthread_join(thread, NULL);
}
