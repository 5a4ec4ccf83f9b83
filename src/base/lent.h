/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. A program may close its file to itself while it has it open, or make one that it may not open again (by
 * its mask), and natively goes on to use it. Whoever is given the descriptor, a server or a process that a server lends
 * it to, has native PnetCDF open it by its name in /proc/self/fd. The kernel opens the file anew then, and asks for
 * permission. So the descriptor stands in for it.
 *
 * A copy shares its position with the descriptor, and that with other processes. PnetCDF and MPI-IO say with each
 * access where in the file it is. Only a file's first bytes PnetCDF reads from where the position is, and with ROMIO on
 * NFS all is read and written there: on NFS the refusal stays. */
#ifndef NESSIE_BASE_LENT_H
#define NESSIE_BASE_LENT_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The descriptor that is called so; -1: it is no such name. */
static inline int nessie_descriptor_named(const char *path) {
  static const char folder[] = "/proc/self/fd/";
  char *end = NULL;
  if (strncmp(path, folder, sizeof folder - 1) != 0) return -1;
  const long number = strtol(path + sizeof folder - 1, &end, 10);
  return *end == '\0' && number <= INT_MAX ? (int)number : -1;
}

/* Whether an open() with these flags has a third argument. */
static inline bool nessie_takes_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

static inline bool nessie_is_open_for(int fd, int flags) {
  const int access = fcntl(fd, F_GETFL) & O_ACCMODE;
  return access == O_RDWR || access == (flags & O_ACCMODE);
}

static inline bool nessie_is_on_nfs(int fd) {
  struct statfs system;
  return fstatfs(fd, &system) != 0 || system.f_type == NFS_SUPER_MAGIC;
}

/* What an open() of `path` has come to, which gave `fd`: a copy of a descriptor, if PnetCDF asked for that by its name
 * in /proc, and was refused because of the file's mode. Otherwise `fd`, and errno as it was. */
static inline int nessie_or_lent(int fd, const char *path, int flags) {
  if (fd >= 0 || errno != EACCES) return fd;
  const int lent = nessie_descriptor_named(path);
  int copy = -1;
  if (lent >= 0 && nessie_is_open_for(lent, flags) && !nessie_is_on_nfs(lent)) copy = fcntl(lent, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0) (void)lseek(copy, 0, SEEK_SET);
  if (copy < 0) errno = EACCES;
  return copy;
}

/* The same of a truncate(), which has come to `result`. */
static inline int nessie_truncate_lent(int result, const char *path, off_t length) {
  const int lent = result != 0 && errno == EACCES ? nessie_descriptor_named(path) : -1;
  if (lent < 0) return result;
  const int done = nessie_is_open_for(lent, O_WRONLY) ? ftruncate(lent, length) : -1;
  if (done != 0) errno = EACCES;
  return done;
}

#endif
