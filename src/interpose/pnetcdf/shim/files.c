/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. ncmpi_close returns, and a put does, before the data are in the file; natively, on one node, every
 * program would see them from then on. So this library stands in front of the functions by which programs open files
 * and ask for their sizes, in every program of the run. Each server has a board of the files that it may still have
 * something of; as long as it is empty, that costs one look at memory. Whoever opens a file that is on the board has
 * the server write it first. Nothing is waited for while the engine runs, whose own files are on the board.
 *
 * The functions may be called anywhere that open(2) may: no memory is allocated, no lock is taken, errno is kept. */
#define _GNU_SOURCE
#include "files.h"

#include "behind.h"
#include "shim.h"

#include <services/staging/board.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { kMostServers = 64, kDefaultPatienceMs = 30000 };

static const nessie_board *boards[kMostServers];
static nessie_board_writes *writes[kMostServers];
static int board_count, may_write = 1;
static int patience_ms = kDefaultPatienceMs;

/* --- the boards ------------------------------------------------------------------------------------------------------ */

/* NULL: cannot be had so. */
static void *map(const char *path, size_t size, bool to_write) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, (to_write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (fd < 0) return NULL;
  void *mapped = mmap(NULL, size, to_write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  return mapped == MAP_FAILED ? NULL : mapped;
}

static void map_board(char *path, size_t size) {
  const nessie_board *board = map(path, sizeof *board, false);
  if (board == NULL || board->magic != NESSIE_BOARD_MAGIC) return;
  const size_t length = strlen(path);
  (void)snprintf(path + length, size - length, "%s", NESSIE_BOARD_COUNTS_SUFFIX);
  nessie_board_writes *counts = map(path, sizeof *counts, true);
  if (counts == NULL) {
    may_write = 0; /* it is another user's */
    counts = map(path, sizeof *counts, false);
  }
  writes[board_count] = counts;
  boards[board_count++] = board;
}

/* Before main(), when there is one thread. Programs that do not see the folder go on without. */
__attribute__((constructor)) static void map_boards(void) {
  const int error = errno;
  const char *text = getenv(NESSIE_BOARD_VARIABLE), *patience = getenv("NESSIE_STAGING_TIMEOUT");
  char path[4096];
  char *folder = NULL;
  const long count = text == NULL ? 0 : strtol(text, &folder, 10);
  if (patience != NULL && atof(patience) > 0) patience_ms = (int)(atof(patience) * 1000);
  for (long i = 0; i < count && i < kMostServers && folder != NULL && *folder == ' '; ++i) {
    const int length = snprintf(path, sizeof path, "%s/board.%ld", folder + 1, i);
    if (length < 0 || (size_t)length + sizeof NESSIE_BOARD_COUNTS_SUFFIX > sizeof path) break;
    map_board(path, sizeof path);
  }
  errno = error;
}

static uint32_t look(const uint32_t *word) {
  return atomic_load_explicit((const _Atomic uint32_t *)word, memory_order_acquire);
}

/* Whether anything needs to be looked at. */
static bool any_files(void) {
  for (int i = 0; i < board_count; ++i)
    if (look(&boards[i]->files) != 0) return !nessie_shim_is_inside();
  return false;
}

static bool is_on(const nessie_board *board, dev_t device, ino_t inode) {
  if (look(&board->files) == 0) return false;
  if (look(&board->overflow) != 0) return true;
  const uint32_t used = look(&board->used);
  for (uint32_t i = 0; i < used && i < NESSIE_BOARD_PLACES; ++i) {
    const nessie_board_place *place = &board->places[i];
    if (atomic_load_explicit((const _Atomic uint64_t *)&place->inode, memory_order_acquire) == inode &&
        place->device == device)
      return true;
  }
  return false;
}

const nessie_boards *nessie_seen_boards(void) {
  static nessie_boards seen = {boards, writes, 0, 0};
  seen.may_write = may_write;
  seen.count = board_count;
  return &seen;
}

/* --- at the door -------------------------------------------------------------------------------------------------------- */

static void complain(const char *what) {
  char text[160];
  const int size = snprintf(text, sizeof text, "nessie: %s; a file may be read before it is whole\n", what);
  (void)!write(STDERR_FILENO, text, (size_t)size);
}

static int knock(const nessie_board *board) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strnlen(board->door, sizeof board->door);
  if (length == 0 || length >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path + 1, board->door, length);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  if (fd < 0 || connect(fd, (const struct sockaddr *)&address, size) == 0) return fd;
  syscall(SYS_close, fd); /* the server has ended, and has nothing any more */
  return -1;
}

/* Until the server says that it is done, or says nothing any more. */
static void await_answer(int fd) {
  char word = NESSIE_DOOR_WORKING;
  struct pollfd event = {fd, POLLIN, 0};
  while (word == NESSIE_DOOR_WORKING) {
    const int ready = poll(&event, 1, patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return complain("a staging server gave no sign of life (NESSIE_STAGING_TIMEOUT)");
    if (ready < 0 || recv(fd, &word, 1, MSG_DONTWAIT) != 1) return;
  }
}

static void settle_at(const nessie_board *board, dev_t device, ino_t inode) {
  const nessie_board_place file = {device, inode};
  const int fd = knock(board);
  if (fd < 0) return;
  if (send(fd, &file, sizeof file, MSG_NOSIGNAL) == (ssize_t)sizeof file) await_answer(fd);
  syscall(SYS_close, fd);
}

/* Returns when the file is whole. */
static bool settle(dev_t device, ino_t inode) {
  const int error = errno;
  bool any = false;
  for (int i = 0; i < board_count; ++i) {
    if (!is_on(boards[i], device, inode)) continue;
    settle_at(boards[i], device, inode);
    any = true;
  }
  errno = error;
  return any;
}

/* The kernel's own struct differs between machines; statx does not. */
static bool identify(int folder, const char *path, int flags, dev_t *device, ino_t *inode) {
  struct statx status;
  const int error = errno;
  const bool known =
      syscall(SYS_statx, folder, path, flags, STATX_TYPE | STATX_INO, &status) == 0 && S_ISREG(status.stx_mode);
  errno = error;
  if (!known) return false;
  *device = makedev(status.stx_dev_major, status.stx_dev_minor);
  *inode = status.stx_ino;
  return true;
}

static void settle_path(int folder, const char *path) {
  dev_t device;
  ino_t inode;
  if (path != NULL && any_files() && identify(folder, path, 0, &device, &inode)) settle(device, inode);
}

static void settle_descriptor(int fd) {
  dev_t device;
  ino_t inode;
  if (fd >= 0 && any_files() && identify(fd, "", AT_EMPTY_PATH, &device, &inode)) settle(device, inode);
}

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

static bool runs_without_us(const char *path) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool without = is_static(fd) || runs_as_another_user(fd);
  syscall(SYS_close, fd);
  return without;
}

void nessie_settle_before_exec(const char *path, int kept) {
  const int error = errno;
  if (any_files() && (!kept || (strchr(path, '/') != NULL && runs_without_us(path))))
    for (int i = 0; i < board_count; ++i) settle_at(boards[i], 0, 0);
  errno = error;
}

/* --- in front of the C library -------------------------------------------------------------------------------------------- */

static bool takes_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

#define READ_MODE(flags, mode)   \
  mode_t mode = 0;               \
  if (takes_mode(flags)) {       \
    va_list list;                \
    va_start(list, flags);       \
    mode = va_arg(list, mode_t); \
    va_end(list);                \
  }

/* Who truncates must wait before, everybody else after: then the file is known. */
static int opened(int fd, int flags) {
  if ((flags & (O_TRUNC | O_PATH)) == 0) settle_descriptor(fd);
  return fd;
}

#define OPEN(name)                                           \
  REAL(name)                                                 \
  NESSIE_EXPORT int name(const char *path, int flags, ...) { \
    READ_MODE(flags, mode)                                   \
    if ((flags & O_TRUNC) != 0) settle_path(AT_FDCWD, path); \
    return opened(BEHIND(name)(path, flags, mode), flags);   \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                     \
  REAL(name)                                                             \
  NESSIE_EXPORT int name(int folder, const char *path, int flags, ...) { \
    READ_MODE(flags, mode)                                               \
    if ((flags & O_TRUNC) != 0) settle_path(folder, path);               \
    return opened(BEHIND(name)(folder, path, flags, mode), flags);       \
  }
OPENAT(openat)
OPENAT(openat64)

/* What calls become that are compiled with checks. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
REAL(__open_2)
REAL(__open64_2)
REAL(__openat_2)
REAL(__openat64_2)
NESSIE_EXPORT int __open_2(const char *path, int flags) {
  if ((flags & O_TRUNC) != 0) settle_path(AT_FDCWD, path);
  return opened(BEHIND(__open_2)(path, flags), flags);
}
NESSIE_EXPORT int __open64_2(const char *path, int flags) {
  if ((flags & O_TRUNC) != 0) settle_path(AT_FDCWD, path);
  return opened(BEHIND(__open64_2)(path, flags), flags);
}
NESSIE_EXPORT int __openat_2(int folder, const char *path, int flags) {
  if ((flags & O_TRUNC) != 0) settle_path(folder, path);
  return opened(BEHIND(__openat_2)(folder, path, flags), flags);
}
NESSIE_EXPORT int __openat64_2(int folder, const char *path, int flags) {
  if ((flags & O_TRUNC) != 0) settle_path(folder, path);
  return opened(BEHIND(__openat64_2)(folder, path, flags), flags);
}

#define TRUNCATES(name, declaration, arguments) \
  REAL(name)                                    \
  NESSIE_EXPORT int name declaration {          \
    settle_path(AT_FDCWD, path);                \
    return BEHIND(name) arguments;              \
  }
TRUNCATES(creat, (const char *path, mode_t mode), (path, mode))
TRUNCATES(creat64, (const char *path, mode_t mode), (path, mode))
TRUNCATES(truncate, (const char *path, off_t length), (path, length))
TRUNCATES(truncate64, (const char *path, off64_t length), (path, length))

static FILE *opened_stream(FILE *stream) {
  if (stream != NULL) settle_descriptor(fileno(stream));
  return stream;
}

#define FOPEN(name)                                                \
  REAL(name)                                                       \
  NESSIE_EXPORT FILE *name(const char *path, const char *mode) {   \
    if (mode != NULL && *mode == 'w') settle_path(AT_FDCWD, path); \
    return opened_stream(BEHIND(name)(path, mode));                \
  }
FOPEN(fopen)
FOPEN(fopen64)

#define FREOPEN(name)                                                          \
  REAL(name)                                                                   \
  NESSIE_EXPORT FILE *name(const char *path, const char *mode, FILE *stream) { \
    if (mode != NULL && *mode == 'w') settle_path(AT_FDCWD, path);             \
    return opened_stream(BEHIND(name)(path, mode, stream));                    \
  }
FREOPEN(freopen)
FREOPEN(freopen64)

/* Asks once more if the file was not whole. */
#define STAT(name, declaration, arguments)                                           \
  REAL(name)                                                                         \
  NESSIE_EXPORT int name declaration {                                               \
    const int result = BEHIND(name) arguments;                                       \
    if (result != 0 || !any_files() || !S_ISREG(status->st_mode)) return result;     \
    return settle(status->st_dev, status->st_ino) ? BEHIND(name) arguments : result; \
  }
STAT(stat, (const char *path, struct stat *status), (path, status))
STAT(stat64, (const char *path, struct stat64 *status), (path, status))
STAT(lstat, (const char *path, struct stat *status), (path, status))
STAT(lstat64, (const char *path, struct stat64 *status), (path, status))
STAT(fstat, (int fd, struct stat *status), (fd, status))
STAT(fstat64, (int fd, struct stat64 *status), (fd, status))
STAT(fstatat, (int folder, const char *path, struct stat *status, int flags), (folder, path, status, flags))
STAT(fstatat64, (int folder, const char *path, struct stat64 *status, int flags), (folder, path, status, flags))

/* What programs call that were linked with C libraries before 2.33. */
int __xstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat(int version, const char *path, struct stat *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstat(int version, int fd, struct stat *status);
int __fxstat64(int version, int fd, struct stat64 *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);
STAT(__xstat, (int version, const char *path, struct stat *status), (version, path, status))
STAT(__xstat64, (int version, const char *path, struct stat64 *status), (version, path, status))
STAT(__lxstat, (int version, const char *path, struct stat *status), (version, path, status))
STAT(__lxstat64, (int version, const char *path, struct stat64 *status), (version, path, status))
STAT(__fxstat, (int version, int fd, struct stat *status), (version, fd, status))
STAT(__fxstat64, (int version, int fd, struct stat64 *status), (version, fd, status))
STAT(__fxstatat, (int version, int folder, const char *path, struct stat *status, int flags),
     (version, folder, path, status, flags))
STAT(__fxstatat64, (int version, int folder, const char *path, struct stat64 *status, int flags),
     (version, folder, path, status, flags))

REAL(statx)
NESSIE_EXPORT int statx(int folder, const char *restrict path, int flags, unsigned mask,
                        struct statx *restrict status) {
  const int result = BEHIND(statx)(folder, path, flags, mask, status);
  if (result != 0 || !any_files() || !S_ISREG(status->stx_mode)) return result;
  const dev_t device = makedev(status->stx_dev_major, status->stx_dev_minor);
  return settle(device, status->stx_ino) ? BEHIND(statx)(folder, path, flags, mask, status) : result;
}
