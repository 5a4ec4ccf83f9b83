/* SPDX-License-Identifier: BSD-3-Clause */
/* Before a program is started that this library will not be in front of, all files are made whole; and it is said when
 * that is because a launcher's -x LD_PRELOAD, or a wrapper, has put something in our place. Nothing else is changed.
 * The functions are called in children of fork() and vfork(): no memory is allocated, no lock taken. */
#define _GNU_SOURCE
#include "behind.h"
#include "boards.h"
#include "door.h"
#include "notes.h"
#include "programs.h"
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NESSIE_LIBRARY "libnessie_pnetcdf.so"

extern char **environ;

static const char *value_in(char *const environment[], const char *name) {
  const size_t length = strlen(name);
  for (; environment != NULL && *environment != NULL; ++environment)
    if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') return *environment + length + 1;
  return NULL;
}

static bool names_us(const char *preload) { return preload != NULL && strstr(preload, NESSIE_LIBRARY) != NULL; }

/* Whether we can do our work in a program that gets this environment, if it can load us. */
static bool leads_to_us(char *const environment[]) {
  return names_us(value_in(environment, "LD_PRELOAD")) && value_in(environment, NESSIE_BOARD_VARIABLE) != NULL;
}

static void note_what_took_our_place(const char *program, char *const environment[]) {
  const char *preload = value_in(environment, "LD_PRELOAD");
  if (names_us(preload) || getenv("NESSIE_NOTES") == NULL) return;
  if (preload != NULL && *preload != '\0') {
    nessie_note((const char *[]){"LD_PRELOAD was replaced by '", preload, "' for ", program}, 4);
  } else if (preload != NULL) {
    nessie_note((const char *[]){"LD_PRELOAD was emptied for ", program}, 2);
  } else if (value_in(environment, "NESSIE_SERVERS") != NULL) {
    nessie_note((const char *[]){"LD_PRELOAD was taken out of the environment of ", program}, 2);
  }
}

/* Shells try a name in one folder after the other; what is not there is not started. */
static bool may_be_started(int folder, const char *program) {
  return strchr(program, '/') == NULL || syscall(SYS_faccessat, folder, program, X_OK) == 0;
}

/* Headers promise what a program may not keep: that no path is null. The kernel answers that. */
static bool is_null(const char *volatile path) { return path == NULL; }

static void before_start(int folder, const char *program, char *const environment[], bool runs_without_us) {
  if (is_null(program)) return;
  if (nessie_any_files() && (runs_without_us || !leads_to_us(environment))) nessie_settle_all();
  if (may_be_started(folder, program)) note_what_took_our_place(program, environment);
}

static void watch(int folder, const char *path, char *const environment[]) {
  const int error = errno;
  before_start(folder, path, environment, nessie_any_files() && nessie_runs_without_us(folder, path));
  errno = error;
}

static void watch_by_name(const char *file, char *const environment[]) {
  const int error = errno;
  before_start(AT_FDCWD, file, environment,
               !is_null(file) && nessie_any_files() && nessie_runs_without_us_by_name(file));
  errno = error;
}

static void watch_open(int fd, char *const environment[]) {
  const int error = errno;
  before_start(AT_FDCWD, "a program", environment, nessie_any_files() && nessie_runs_without_us_open(fd));
  errno = error;
}

/* The shell that system() and popen() start inside of the C library. */
static void watch_shell(void) { watch(AT_FDCWD, "/bin/sh", environ); }

REAL(execve)
NESSIE_EXPORT int execve(const char *path, char *const argv[], char *const envp[]) {
  watch(AT_FDCWD, path, envp);
  return BEHIND(execve)(path, argv, envp);
}

REAL(execv)
NESSIE_EXPORT int execv(const char *path, char *const argv[]) {
  watch(AT_FDCWD, path, environ);
  return BEHIND(execv)(path, argv);
}

REAL(execvpe)
NESSIE_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[]) {
  watch_by_name(file, envp);
  return BEHIND(execvpe)(file, argv, envp);
}

REAL(execvp)
NESSIE_EXPORT int execvp(const char *file, char *const argv[]) {
  watch_by_name(file, environ);
  return BEHIND(execvp)(file, argv);
}

REAL(fexecve)
NESSIE_EXPORT int fexecve(int fd, char *const argv[], char *const envp[]) {
  watch_open(fd, envp);
  return BEHIND(fexecve)(fd, argv, envp);
}

REAL(execveat)
NESSIE_EXPORT int execveat(int folder, const char *path, char *const argv[], char *const envp[], int flags) {
  if ((flags & AT_EMPTY_PATH) != 0 && !is_null(path) && *path == '\0')
    watch_open(folder, envp);
  else
    watch(folder, path, envp);
  return BEHIND(execveat)(folder, path, argv, envp, flags);
}

REAL(posix_spawn)
NESSIE_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                              const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
  watch(AT_FDCWD, path, envp);
  return BEHIND(posix_spawn)(pid, path, actions, attributes, argv, envp);
}

REAL(posix_spawnp)
NESSIE_EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                               const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
  watch_by_name(file, envp);
  return BEHIND(posix_spawnp)(pid, file, actions, attributes, argv, envp);
}

REAL(system)
NESSIE_EXPORT int system(const char *command) {
  if (command != NULL) watch_shell();
  return BEHIND(system)(command);
}

REAL(popen)
NESSIE_EXPORT FILE *popen(const char *command, const char *mode) {
  watch_shell();
  return BEHIND(popen)(command, mode);
}

/* The arguments from `first` on, up to the null pointer, as an array on the stack; then the statement. What has its
 * arguments in a list cannot be handed on so: who comes next is asked for the same with an array. */
#define WITH_ARGUMENTS(first, statement)                                \
  do {                                                                  \
    va_list list;                                                       \
    size_t count = 1;                                                   \
    va_start(list, first);                                              \
    while (va_arg(list, const char *) != NULL) ++count;                 \
    va_end(list);                                                       \
    char *argv[count + 1];                                              \
    argv[0] = (char *)first;                                            \
    va_start(list, first);                                              \
    for (size_t i = 1; i <= count; ++i) argv[i] = va_arg(list, char *); \
    statement;                                                          \
  } while (0)

NESSIE_EXPORT int execl(const char *path, const char *argument, ...) {
  WITH_ARGUMENTS(argument, va_end(list); return execv(path, argv));
}

NESSIE_EXPORT int execlp(const char *file, const char *argument, ...) {
  WITH_ARGUMENTS(argument, va_end(list); return execvp(file, argv));
}

NESSIE_EXPORT int execle(const char *path, const char *argument, ...) {
  WITH_ARGUMENTS(argument, char *const *envp = va_arg(list, char *const *); va_end(list);
                 return execve(path, argv, envp));
}
