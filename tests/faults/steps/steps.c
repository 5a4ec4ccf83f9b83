// SPDX-License-Identifier: BSD-3-Clause
// Preloaded: counts the steps of one process, and kills, or stops, it just before one of them. A step is a call that
// others can see the effect of: to write, sync, make, rename or remove a file; to send, connect, signal or wake; to
// reach into another process's memory; to start one.
//
// NESSIE_STEPS_FILES: files of struct counting, made by the test, with colons between them; each says who is meant, and
// gets what happened. The first process that answers to it is counted, and no other one. What a process stores in
// memory that it shares (boards, marks, rings) is no call, and is not seen; it lies between two steps.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { kSteps = 16384, kWords = 4096 };

/// counting.py has its layout.
struct counting {
  char program[64];     ///< who is counted: the name of its program,
  char word[64];        ///< a word of its command line after that, if any,
  char after[64];       ///< the word before that one, if any,
  char without[64];     ///< and none that begins with this, if any; or
  char variable[64];    ///< a variable of its environment, NAME=VALUE, if any
  int64_t kill_at;      ///< 0: only count
  int64_t stops;        ///< there, and goes on when it is told to
  _Atomic int64_t pid;  ///< who it is; 0: nobody yet
  _Atomic int64_t steps;
  char calls[kSteps][64];  ///< what each step was
};

static struct counting *counting;
static pid_t counted = -1;

static int has_word(const char *words, size_t size) {
  const char *before = "", *end = words + size;
  int found = counting->word[0] == '\0';
  for (const char *word = words; word < end; before = word, word += strlen(word) + 1) {
    if (counting->without[0] != '\0' && strncmp(word, counting->without, strlen(counting->without)) == 0) return 0;
    if (strcmp(word, counting->word) == 0 && (counting->after[0] == '\0' || strcmp(before, counting->after) == 0))
      found = 1;
  }
  return found;
}

static int has_variable(void) {
  char name[sizeof counting->variable];
  memcpy(name, counting->variable, sizeof name);
  char *value = strchr(name, '=');
  if (value == NULL) return 1;
  *value++ = '\0';
  const char *is = getenv(name);
  return is != NULL && strcmp(is, value) == 0;
}

static int is_meant(void) {
  char words[kWords];
  const int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? 0 : read(file, words, sizeof words - 1);
  if (file >= 0) close(file);
  if (size <= 0) return 0;
  words[size] = '\0';
  return strcmp(program_invocation_short_name, counting->program) == 0 && has_word(words, (size_t)size) &&
         has_variable();
}

static struct counting *look_at(const char *path) {
  const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (file < 0) return NULL;
  void *memory = mmap(NULL, sizeof *counting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? NULL : memory;
}

__attribute__((constructor)) static void begin(void) {
  const char *files = getenv("NESSIE_STEPS_FILES");
  char paths[kWords], *rest = NULL;
  snprintf(paths, sizeof paths, "%s", files == NULL ? "" : files);
  for (char *path = strtok_r(paths, ":", &rest); path != NULL && counted < 0; path = strtok_r(NULL, ":", &rest)) {
    int64_t nobody = 0;
    counting = look_at(path);
    if (counting == NULL) continue;
    if (is_meant() && atomic_compare_exchange_strong(&counting->pid, &nobody, getpid())) counted = getpid();
  }
}

/// A child that has not run its own program yet is another process.
static int is_counted(void) { return counted > 0 && getpid() == counted; }

static void note(int64_t step, const char *call, const char *what) {
  if (step <= kSteps) snprintf(counting->calls[step - 1], sizeof counting->calls[0], "%s %s", call, what);
}

static void take_step(const char *call, const char *what) {
  const int error = errno;
  const int64_t step = atomic_fetch_add(&counting->steps, 1) + 1;
  note(step, call, what);
  if (step == counting->kill_at && counting->stops) syscall(SYS_kill, getpid(), SIGSTOP);
  if (step == counting->kill_at && !counting->stops)
    for (;;) syscall(SYS_kill, getpid(), SIGKILL);
  errno = error;
}

static void step(const char *call, const char *path) {
  if (!is_counted()) return;
  const size_t length = strlen(path);
  take_step(call, length > 40 ? path + length - 40 : path);
}

static void step_on(const char *call, int file) {
  if (!is_counted()) return;
  char link[64], path[256];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  path[size > 0 ? size : 0] = '\0';
  step(call, path);
}

#define NEXT(name)               \
  static __typeof__(&name) next; \
  if (next == NULL) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define ON_FILE(result, name, parameters, arguments, file) \
  EXPORT result name parameters {                          \
    NEXT(name);                                            \
    step_on(#name, file);                                  \
    return next arguments;                                 \
  }
#define ON_PATH(result, name, parameters, arguments, path) \
  EXPORT result name parameters {                          \
    NEXT(name);                                            \
    step(#name, path);                                     \
    return next arguments;                                 \
  }

ON_FILE(ssize_t, write, (int file, const void *data, size_t size), (file, data, size), file)
ON_FILE(ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count), file)
ON_FILE(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at), file)
ON_FILE(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at), file)
ON_FILE(ssize_t, pwritev, (int file, const struct iovec *parts, int count, off_t at), (file, parts, count, at), file)
ON_FILE(ssize_t, pwritev64, (int file, const struct iovec *parts, int count, off64_t at), (file, parts, count, at),
        file)
ON_FILE(ssize_t, pwritev2, (int file, const struct iovec *parts, int count, off_t at, int flags),
        (file, parts, count, at, flags), file)
ON_FILE(ssize_t, pwritev64v2, (int file, const struct iovec *parts, int count, off64_t at, int flags),
        (file, parts, count, at, flags), file)
ON_FILE(ssize_t, copy_file_range, (int from, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
        (from, at, to, to_at, size, flags), to)
ON_FILE(ssize_t, sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size), to)
ON_FILE(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size), to)
ON_FILE(int, fsync, (int file), (file), file)
ON_FILE(int, fdatasync, (int file), (file), file)
ON_FILE(int, ftruncate, (int file, off_t size), (file, size), file)
ON_FILE(int, ftruncate64, (int file, off64_t size), (file, size), file)
ON_FILE(int, fallocate, (int file, int mode, off_t at, off_t size), (file, mode, at, size), file)
ON_FILE(int, fallocate64, (int file, int mode, off64_t at, off64_t size), (file, mode, at, size), file)
ON_FILE(int, posix_fallocate, (int file, off_t at, off_t size), (file, at, size), file)
ON_FILE(int, posix_fallocate64, (int file, off64_t at, off64_t size), (file, at, size), file)
ON_FILE(int, fchmod, (int file, mode_t mode), (file, mode), file)
ON_FILE(ssize_t, send, (int to, const void *data, size_t size, int flags), (to, data, size, flags), to)
ON_FILE(ssize_t, sendmsg, (int to, const struct msghdr *message, int flags), (to, message, flags), to)
ON_FILE(ssize_t, sendto,
        (int to, const void *data, size_t size, int flags, const struct sockaddr *address, socklen_t length),
        (to, data, size, flags, address, length), to)
ON_FILE(int, sendmmsg, (int to, struct mmsghdr *messages, unsigned count, int flags), (to, messages, count, flags), to)
ON_FILE(int, connect, (int file, const struct sockaddr *address, socklen_t length), (file, address, length), file)
ON_FILE(int, bind, (int file, const struct sockaddr *address, socklen_t length), (file, address, length), file)
ON_FILE(int, listen, (int file, int backlog), (file, backlog), file)

ON_PATH(int, rename, (const char *from, const char *to), (from, to), to)
ON_PATH(int, renameat, (int in, const char *from, int to_in, const char *to), (in, from, to_in, to), to)
ON_PATH(int, renameat2, (int in, const char *from, int to_in, const char *to, unsigned flags),
        (in, from, to_in, to, flags), to)
ON_PATH(int, link, (const char *from, const char *to), (from, to), to)
ON_PATH(int, symlink, (const char *from, const char *to), (from, to), to)
ON_PATH(int, unlink, (const char *path), (path), path)
ON_PATH(int, unlinkat, (int in, const char *path, int flags), (in, path, flags), path)
ON_PATH(int, remove, (const char *path), (path), path)
ON_PATH(int, rmdir, (const char *path), (path), path)
ON_PATH(int, mkdir, (const char *path, mode_t mode), (path, mode), path)
ON_PATH(char *, mkdtemp, (char *path), (path), path)
ON_PATH(int, truncate, (const char *path, off_t size), (path, size), path)
ON_PATH(int, truncate64, (const char *path, off64_t size), (path, size), path)
ON_PATH(int, shm_unlink, (const char *path), (path), path)

ON_PATH(ssize_t, process_vm_readv,
        (pid_t of, const struct iovec *to, unsigned long count, const struct iovec *from, unsigned long from_count,
         unsigned long flags),
        (of, to, count, from, from_count, flags), "")
ON_PATH(ssize_t, process_vm_writev,
        (pid_t of, const struct iovec *from, unsigned long count, const struct iovec *to, unsigned long to_count,
         unsigned long flags),
        (of, from, count, to, to_count, flags), "")
ON_PATH(int, kill, (pid_t pid, int signal), (pid, signal), "")
ON_PATH(pid_t, fork, (void), (), "")

struct io_uring;
int io_uring_submit(struct io_uring *ring);
ON_PATH(int, io_uring_submit, (struct io_uring * ring), (ring), "")

static void step_of_open(const char *call, const char *path, int flags) {
  if ((flags & (O_CREAT | O_TRUNC)) != 0) step(call, path);
}

#define OPEN(name, parameters, arguments)                                                \
  EXPORT int name parameters {                                                           \
    NEXT(name);                                                                          \
    va_list more;                                                                        \
    va_start(more, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                        \
    step_of_open(#name, path, flags);                                                    \
    return next arguments;                                                               \
  }
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int in, const char *path, int flags, ...), (in, path, flags, mode))
OPEN(openat64, (int in, const char *path, int flags, ...), (in, path, flags, mode))

EXPORT int shm_open(const char *path, int flags, mode_t mode) {
  NEXT(shm_open);
  step_of_open("shm_open", path, flags);
  return next(path, flags, mode);
}

static int wakes(int operation) {
  operation &= FUTEX_CMD_MASK;
  return operation == FUTEX_WAKE || operation == FUTEX_WAKE_BITSET || operation == FUTEX_WAKE_OP;
}

/// Futexes and what else has no function of its own.
EXPORT long syscall(long number, ...) {
  static long (*next)(long, ...);
  if (next == NULL) next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && wakes((int)a[1])) step("futex", "");
  if (number == SYS_io_uring_enter) step("io_uring_enter", "");
  if (number == SYS_renameat2) step("renameat2", (const char *)a[3]);
  if (number == SYS_openat) step_of_open("openat", (const char *)a[1], (int)a[2]);
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/// What is preloaded is taken from the environments of servers and agents, and is meant for them, too.
EXPORT int execvpe(const char *path, char *const words[], char *const variables[]) {
  NEXT(execvpe);
  const char *library = getenv("NESSIE_STEPS_LIBRARY");
  size_t count = 0;
  int is_there = library == NULL;
  for (; variables[count] != NULL; ++count) is_there |= strncmp(variables[count], "LD_PRELOAD=", 11) == 0;
  if (is_there) return next(path, words, variables);
  char text[kWords];
  char *more[count + 2];
  snprintf(text, sizeof text, "LD_PRELOAD=%s", library);
  memcpy(more, variables, count * sizeof *more);
  more[count] = text;
  more[count + 1] = NULL;
  return next(path, words, more);
}

EXPORT int execv(const char *path, char *const words[]) { return execvpe(path, words, environ); }
