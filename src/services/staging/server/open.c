/* SPDX-License-Identifier: BSD-3-Clause */
/* open() and truncate() as native PnetCDF and MPI-IO find them in a server: what a program gave it is open already,
 * though the program's user may not open it again (base/lent.h). */
#define _GNU_SOURCE
#include <base/lent.h>

#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_or_lent(const char *path, int flags, mode_t mode) {
  return nessie_or_lent((int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), path, flags);
}

#define OPEN(name)                                                           \
  int name(const char *path, int flags, ...) {                               \
    va_list list;                                                            \
    va_start(list, flags);                                                   \
    const mode_t mode = nessie_takes_mode(flags) ? va_arg(list, mode_t) : 0; \
    va_end(list);                                                            \
    return open_or_lent(path, flags, mode);                                  \
  }
OPEN(open)
OPEN(open64)

int truncate(const char *path, off_t length) {
  return nessie_truncate_lent((int)syscall(SYS_truncate, path, length), path, length);
}
int truncate64(const char *path, off64_t length) { return truncate(path, length); }
