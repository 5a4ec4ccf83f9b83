/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. A descriptor may have been open before the data were put. Whoever asks through it for the end of the
 * file, changes its length, copies it inside of the kernel or has it brought to the disk waits until it is whole, as
 * who opens it does. Who reads, writes or maps does not: all that a program does would be slower by a look at what each
 * descriptor is; and mmap is called by allocators and sanitizers, before this library can know what comes behind it. */
#define _GNU_SOURCE
#include "behind.h"
#include "boards.h"
#include "door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* --- the end of a file -------------------------------------------------------------------------------------------------- */

static void before_seek(int fd, int whence) {
  if (whence != SEEK_SET && whence != SEEK_CUR) nessie_settle_descriptor(fd);
}

static void before_seek_in(FILE *stream, int whence) {
  const int error = errno;
  if (whence == SEEK_END) nessie_settle_descriptor(fileno(stream));
  errno = error;
}

off_t __lseek(int fd, off_t offset, int whence);
#define SEEK(name, type) \
  AFTER(before_seek(fd, whence), type, name, (int fd, type offset, int whence), (fd, offset, whence))
#define SEEK_IN(name, type) \
  AFTER(before_seek_in(stream, whence), int, name, (FILE * stream, type offset, int whence), (stream, offset, whence))
SEEK(lseek, off_t)
SEEK(lseek64, off64_t)
SEEK(__lseek, off_t)
SEEK_IN(fseek, long)
SEEK_IN(fseeko, off_t)
SEEK_IN(fseeko64, off64_t)

/* --- its length --------------------------------------------------------------------------------------------------------- */

#define CHANGES(name, declaration, arguments) AFTER(nessie_settle_descriptor(fd), int, name, declaration, arguments)
CHANGES(ftruncate, (int fd, off_t length), (fd, length))
CHANGES(ftruncate64, (int fd, off64_t length), (fd, length))
CHANGES(fallocate, (int fd, int mode, off_t offset, off_t length), (fd, mode, offset, length))
CHANGES(fallocate64, (int fd, int mode, off64_t offset, off64_t length), (fd, mode, offset, length))
CHANGES(posix_fallocate, (int fd, off_t offset, off_t length), (fd, offset, length))
CHANGES(posix_fallocate64, (int fd, off64_t offset, off64_t length), (fd, offset, length))

/* --- copies ------------------------------------------------------------------------------------------------------------- */

static void before_copy(int from, int to) {
  nessie_settle_descriptor(from);
  nessie_settle_descriptor(to);
}

AFTER(before_copy(from, to), ssize_t, copy_file_range,
      (int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags),
      (from, from_offset, to, to_offset, size, flags))
AFTER(before_copy(from, to), ssize_t, sendfile, (int to, int from, off_t *offset, size_t size),
      (to, from, offset, size))
AFTER(before_copy(from, to), ssize_t, sendfile64, (int to, int from, off64_t *offset, size_t size),
      (to, from, offset, size))

/* --- to the disk -------------------------------------------------------------------------------------------------------- */

static void before_all_is_synced(void) {
  if (nessie_any_files()) nessie_settle_all();
}

AFTER(nessie_settle_descriptor(fd), int, fsync, (int fd), (fd))
AFTER(nessie_settle_descriptor(fd), int, fdatasync, (int fd), (fd))
AFTER(before_all_is_synced(), int, syncfs, (int fd), (fd))
AFTER(before_all_is_synced(), void, sync, (void), ())
