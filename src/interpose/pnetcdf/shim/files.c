/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. ncmpi_close returns, and a put does, before the data are in the file; natively, on one node, every
 * program would see them from then on. So this library stands in front of the functions by which programs open files,
 * ask for their sizes and set their times, in every program of the run. Each server has a board of the files that it
 * may still have something of; as long as it is empty, that costs one look at memory. Whoever opens a file that is on
 * the board has the server write it first. Nothing is waited for while the engine runs, whose own files are on the
 * board.
 *
 * The functions may be called anywhere that open(2) may: no memory is allocated, no lock is taken, errno is kept. */
#define _GNU_SOURCE
#include "behind.h"
#include "boards.h"
#include "door.h"
#include "shim.h"

#include <base/lent.h>

#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

static void settle_path(int folder, const char *path) { nessie_settle_named(folder, path, 0); }

#define READ_MODE(flags, mode)    \
  mode_t mode = 0;                \
  if (nessie_takes_mode(flags)) { \
    va_list list;                 \
    va_start(list, flags);        \
    mode = va_arg(list, mode_t);  \
    va_end(list);                 \
  }

/* Who truncates must wait before, everybody else after: then the file is known. A writer says so first: what servers
 * begin to write after that leaves alone what he writes. */
static int opened(int fd, int flags) {
  if ((flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY) nessie_note_writer_of(fd);
  if ((flags & (O_TRUNC | O_PATH)) == 0) nessie_settle_descriptor(fd);
  return fd;
}

#define OPEN(name)                                                                        \
  REAL(name)                                                                              \
  NESSIE_EXPORT int name(const char *path, int flags, ...) {                              \
    READ_MODE(flags, mode)                                                                \
    if ((flags & O_TRUNC) != 0) settle_path(AT_FDCWD, path);                              \
    const int fd = BEHIND(name)(path, flags, mode);                                       \
    return opened(nessie_shim_is_inside() ? nessie_or_lent(fd, path, flags) : fd, flags); \
  }
int __open(const char *path, int flags, ...);
int __open64(const char *path, int flags, ...);
OPEN(open)
OPEN(open64)
OPEN(__open)
OPEN(__open64)

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

/* Which file a handle stands for shows when it is open. */
REAL(open_by_handle_at)
NESSIE_EXPORT int open_by_handle_at(int folder, struct file_handle *handle, int flags) {
  if ((flags & O_TRUNC) != 0 && nessie_any_files()) nessie_settle_all();
  return opened(BEHIND(open_by_handle_at)(folder, handle, flags), flags);
}

#define CREATES(name)                                                      \
  REAL(name)                                                               \
  NESSIE_EXPORT int name(const char *path, mode_t mode) {                  \
    settle_path(AT_FDCWD, path);                                           \
    return opened(BEHIND(name)(path, mode), O_CREAT | O_WRONLY | O_TRUNC); \
  }
CREATES(creat)
CREATES(creat64)

static void before_truncating(const char *path) {
  nessie_note_writer_of_named(path);
  settle_path(AT_FDCWD, path);
}

#define TRUNCATE(name, offset)                                                            \
  REAL(name)                                                                              \
  NESSIE_EXPORT int name(const char *path, offset length) {                               \
    before_truncating(path);                                                              \
    const int result = BEHIND(name)(path, length);                                        \
    return nessie_shim_is_inside() ? nessie_truncate_lent(result, path, length) : result; \
  }
TRUNCATE(truncate, off_t)
TRUNCATE(truncate64, off64_t)

static FILE *opened_stream(FILE *stream, const char *mode) {
  if (stream == NULL) return NULL;
  if (strpbrk(mode, "wa+") != NULL) nessie_note_writer_of(fileno(stream));
  nessie_settle_descriptor(fileno(stream));
  return stream;
}

#define FOPEN(name)                                                \
  REAL(name)                                                       \
  NESSIE_EXPORT FILE *name(const char *path, const char *mode) {   \
    if (mode != NULL && *mode == 'w') settle_path(AT_FDCWD, path); \
    return opened_stream(BEHIND(name)(path, mode), mode);          \
  }
FILE *_IO_fopen(const char *path, const char *mode);
FOPEN(fopen)
FOPEN(fopen64)
FOPEN(_IO_fopen)

/* Without a path the stream's own file is opened anew. */
static void settle_before_reopening(const char *path, FILE *stream) {
  if (path != NULL)
    settle_path(AT_FDCWD, path);
  else
    nessie_settle_descriptor(fileno(stream));
}

#define FREOPEN(name)                                                          \
  REAL(name)                                                                   \
  NESSIE_EXPORT FILE *name(const char *path, const char *mode, FILE *stream) { \
    if (mode != NULL && *mode == 'w') settle_before_reopening(path, stream);   \
    return opened_stream(BEHIND(name)(path, mode, stream), mode);              \
  }
FREOPEN(freopen)
FREOPEN(freopen64)

/* Asks once more if the file was not whole. */
#define STAT(name, declaration, arguments)                                                  \
  REAL(name)                                                                                \
  NESSIE_EXPORT int name declaration {                                                      \
    const int result = BEHIND(name) arguments;                                              \
    if (result != 0 || !nessie_any_files() || !S_ISREG(status->st_mode)) return result;     \
    return nessie_settle(status->st_dev, status->st_ino) ? BEHIND(name) arguments : result; \
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
  if (result != 0 || !nessie_any_files() || !S_ISREG(status->stx_mode)) return result;
  const dev_t device = makedev(status->stx_dev_major, status->stx_dev_minor);
  return nessie_settle(device, status->stx_ino) ? BEHIND(statx)(folder, path, flags, mask, status) : result;
}

/* Times that are set would be lost when something is written afterwards. */
#define SETS_TIMES(name, declaration, arguments) AFTER(settle_path(AT_FDCWD, path), int, name, declaration, arguments)
SETS_TIMES(utime, (const char *path, const struct utimbuf *times), (path, times))
SETS_TIMES(utimes, (const char *path, const struct timeval times[2]), (path, times))
AFTER(nessie_settle_descriptor(fd), int, futimes, (int fd, const struct timeval times[2]), (fd, times))
AFTER(nessie_settle_descriptor(fd), int, futimens, (int fd, const struct timespec times[2]), (fd, times))
AFTER(path == NULL ? nessie_settle_descriptor(folder) : settle_path(folder, path), int, futimesat,
      (int folder, const char *path, const struct timeval times[2]), (folder, path, times))
AFTER(nessie_settle_named(folder, path, flags &AT_SYMLINK_NOFOLLOW), int, utimensat,
      (int folder, const char *path, const struct timespec times[2], int flags), (folder, path, times, flags))
AFTER(nessie_settle_named(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW), int, lutimes,
      (const char *path, const struct timeval times[2]), (path, times))

/* --- what the C library opens or asks for inside ---------------------------------------------------------------------- */

static void before_spawning(const char *path, int flags) {
  settle_path(AT_FDCWD, path);
  if ((flags & O_ACCMODE) != O_RDONLY) nessie_note_writer_of_named(path);
}

/* What the new program is to find open. */
AFTER(before_spawning(path, flags), int, posix_spawn_file_actions_addopen,
      (posix_spawn_file_actions_t *restrict actions, int fd, const char *restrict path, int flags, mode_t mode),
      (actions, fd, path, flags, mode))

/* True: the file was not whole, and is now. */
static bool is_settled(mode_t mode, dev_t device, ino_t inode) {
  return nessie_any_files() && S_ISREG(mode) && nessie_settle(device, inode);
}

/* Walks visit through a function of ours, which asks again for the size of a file that was not whole. */
#define FTW_WALK(walk, visitor, information, ask)                                                        \
  REAL(walk)                                                                                             \
  static __thread visitor visitor_of_##walk;                                                             \
  static int visit_of_##walk(const char *path, const struct information *status, int kind) {             \
    struct information now = *status;                                                                    \
    if (kind == FTW_F && is_settled(now.st_mode, now.st_dev, now.st_ino)) (void)BEHIND(ask)(path, &now); \
    return visitor_of_##walk(path, &now, kind);                                                          \
  }                                                                                                      \
  NESSIE_EXPORT int walk(const char *path, visitor visit, int descriptors) {                             \
    const visitor before = visitor_of_##walk; /* a visitor may walk, too */                              \
    visitor_of_##walk = visit;                                                                           \
    const int result = BEHIND(walk)(path, visit_of_##walk, descriptors);                                 \
    visitor_of_##walk = before;                                                                          \
    return result;                                                                                       \
  }

#define NFTW_WALK(walk, visitor, information, ask)                                                           \
  REAL(walk)                                                                                                 \
  static __thread struct {                                                                                   \
    visitor visit;                                                                                           \
    int flags;                                                                                               \
  } state_of_##walk;                                                                                         \
  static int visit_of_##walk(const char *path, const struct information *status, int kind, struct FTW *at) { \
    struct information now = *status;                                                                        \
    const bool within = (state_of_##walk.flags & FTW_CHDIR) != 0; /* the file's folder is the working one */ \
    if (kind == FTW_F && is_settled(now.st_mode, now.st_dev, now.st_ino))                                    \
      (void)BEHIND(ask)(within ? path + at->base : path, &now);                                              \
    return state_of_##walk.visit(path, &now, kind, at);                                                      \
  }                                                                                                          \
  NESSIE_EXPORT int walk(const char *path, visitor visit, int descriptors, int flags) {                      \
    const __typeof__(state_of_##walk) before = state_of_##walk;                                              \
    state_of_##walk.visit = visit;                                                                           \
    state_of_##walk.flags = flags;                                                                           \
    const int result = BEHIND(walk)(path, visit_of_##walk, descriptors, flags);                              \
    state_of_##walk = before;                                                                                \
    return result;                                                                                           \
  }

FTW_WALK(ftw, __ftw_func_t, stat, stat)
FTW_WALK(ftw64, __ftw64_func_t, stat64, stat64)
NFTW_WALK(nftw, __nftw_func_t, stat, stat)
NFTW_WALK(nftw64, __nftw64_func_t, stat64, stat64)

#define FTS_WALK(read, children, walk, entry, ask)                                                 \
  REAL(read)                                                                                       \
  NESSIE_EXPORT entry *read(walk *at) {                                                            \
    entry *found = BEHIND(read)(at);                                                               \
    if (found != NULL && found->fts_info == FTS_F &&                                               \
        is_settled(found->fts_statp->st_mode, found->fts_statp->st_dev, found->fts_statp->st_ino)) \
      (void)BEHIND(ask)(found->fts_accpath, found->fts_statp);                                     \
    return found;                                                                                  \
  }                                                                                                \
  REAL(children) /* From which folder its entries can be reached is not known here. */             \
  NESSIE_EXPORT entry *children(walk *at, int options) {                                           \
    if (nessie_any_files()) nessie_settle_all();                                                   \
    return BEHIND(children)(at, options);                                                          \
  }
FTS_WALK(fts_read, fts_children, FTS, FTSENT, stat)
FTS_WALK(fts64_read, fts64_children, FTS64, FTSENT64, stat64)
