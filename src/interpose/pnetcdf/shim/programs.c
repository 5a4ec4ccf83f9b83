/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "programs.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { kLongestPath = 4096, kLongestLine = 256, kMostInterpreters = 5 };

/* Our own file's head: of the format that can load us. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static bool has_bytes(int fd, void *to, size_t size, uint64_t place) {
  return pread(fd, to, size, (off_t)place) == (ssize_t)size;
}

/* Whether a segment names another dynamic linker than the C library's. */
static bool names_another_linker(int fd, const ElfW(Phdr) * segment) {
  char name[kLongestLine];
  const size_t length = segment->p_filesz - 1; /* there is a zero at the end */
  if (length >= sizeof name || length < strlen(LD_SO) || !has_bytes(fd, name, length, segment->p_offset)) return true;
  return memcmp(name + length - strlen(LD_SO), LD_SO, strlen(LD_SO)) != 0;
}

static bool is_static_or_foreign(int fd) {
  ElfW(Ehdr) head;
  ElfW(Phdr) segment;
  if (!has_bytes(fd, &head, sizeof head, 0)) return true;
  if (head.e_ident[EI_CLASS] != __ehdr_start.e_ident[EI_CLASS] || head.e_machine != __ehdr_start.e_machine) return true;
  for (size_t i = 0; i < head.e_phnum; ++i) {
    if (!has_bytes(fd, &segment, sizeof segment, head.e_phoff + i * sizeof segment)) return true;
    if (segment.p_type == PT_INTERP) return names_another_linker(fd, &segment);
  }
  return true;
}

/* Whether the kernel takes LD_PRELOAD away, or much of it. */
static bool gets_other_rights(int fd) {
  struct statx status;
  return syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MODE, &status) != 0 ||
         (status.stx_mode & (S_ISUID | S_ISGID)) != 0 || fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static bool runs_without_us(int folder, const char *path, int interpreters);

/* Of a script, by its first line. */
static bool interpreter_runs_without_us(char *line, int interpreters) {
  char *name = line + 2 + strspn(line + 2, " \t");
  name[strcspn(name, " \t\n")] = '\0';
  return interpreters == 0 || runs_without_us(AT_FDCWD, name, interpreters - 1);
}

static bool open_one_runs_without_us(int fd, int interpreters) {
  char line[kLongestLine] = "";
  if (gets_other_rights(fd) || pread(fd, line, sizeof line - 1, 0) < SELFMAG) return true;
  if (memcmp(line, ELFMAG, SELFMAG) == 0) return is_static_or_foreign(fd);
  return memcmp(line, "#!", 2) != 0 || interpreter_runs_without_us(line, interpreters);
}

/* Nothing but a regular file can be executed, and opening something else might wait for ever. */
static bool runs_without_us(int folder, const char *path, int interpreters) {
  struct statx status;
  if (syscall(SYS_statx, folder, path, 0, STATX_TYPE, &status) != 0 || !S_ISREG(status.stx_mode)) return false;
  const int fd = (int)syscall(SYS_openat, folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return true;
  const bool without = open_one_runs_without_us(fd, interpreters);
  syscall(SYS_close, fd);
  return without;
}

bool nessie_runs_without_us(int folder, const char *path) { return runs_without_us(folder, path, kMostInterpreters); }

bool nessie_runs_without_us_open(int fd) { return open_one_runs_without_us(fd, kMostInterpreters); }

/* The first of PATH that may be executed, as execvp has it. */
bool nessie_runs_without_us_by_name(const char *file) {
  char path[kLongestPath];
  const char *folders = getenv("PATH");
  if (strchr(file, '/') != NULL) return nessie_runs_without_us(AT_FDCWD, file);
  for (const char *next = folders == NULL ? "/bin:/usr/bin" : folders; next != NULL;) {
    const size_t length = strcspn(next, ":"), size = strlen(file) + 1;
    if (length + 1 + size > sizeof path) return true;
    memcpy(path, next, length);
    path[length] = '/';
    memcpy(path + length + (length > 0), file, size); /* nothing is the working folder */
    if (faccessat(AT_FDCWD, path, X_OK, 0) == 0) return nessie_runs_without_us(AT_FDCWD, path);
    next = next[length] == ':' ? next + length + 1 : NULL;
  }
  return false;
}
