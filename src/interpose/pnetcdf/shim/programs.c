/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "programs.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether an executable names no dynamic linker: of our own machine's format, which is all that can be run. */
static bool is_static(int fd) {
  ElfW(Ehdr) head;
  ElfW(Phdr) segment;
  if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    return false;
  for (size_t i = 0; i < head.e_phnum; ++i) {
    const off_t place = (off_t)(head.e_phoff + i * sizeof segment);
    if (pread(fd, &segment, sizeof segment, place) != (ssize_t)sizeof segment || segment.p_type == PT_INTERP)
      return false;
  }
  return true;
}

static bool runs_as_another_user(int fd) {
  struct statx status;
  return syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MODE, &status) == 0 &&
         (status.stx_mode & (S_ISUID | S_ISGID)) != 0;
}

bool nessie_runs_without_us(const char *path) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool without = is_static(fd) || runs_as_another_user(fd);
  syscall(SYS_close, fd);
  return without;
}
