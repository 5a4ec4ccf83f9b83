/* SPDX-License-Identifier: BSD-3-Clause */
/* Says when a program is started without this library: a launcher's -x LD_PRELOAD, or a wrapper, has put something in
 * its place. Nothing else is changed. The functions are called in children of fork() and vfork(): no memory is
 * allocated, no lock taken. */
#define _GNU_SOURCE
#include "behind.h"
#include "boards.h"
#include "door.h"
#include "notes.h"
#include "programs.h"
#include "shim.h"

#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NESSIE_LIBRARY "libnessie_pnetcdf.so"

extern char **environ;

static const char *value_in(char *const environment[], const char *name) {
  const size_t length = strlen(name);
  for (; environment != NULL && *environment != NULL; ++environment)
    if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') return *environment + length + 1;
  return NULL;
}

static void watch(const char *program, char *const environment[]) {
  if (program == NULL) return;
  const char *preload = value_in(environment, "LD_PRELOAD");
  const int kept = preload != NULL && strstr(preload, NESSIE_LIBRARY) != NULL;
  if (nessie_any_files() && (!kept || (strchr(program, '/') != NULL && nessie_runs_without_us(program))))
    nessie_settle_all();
  if (kept || getenv("NESSIE_NOTES") == NULL) return;
  if (preload != NULL) {
    nessie_note((const char *[]){"LD_PRELOAD was replaced by '", preload, "' for ", program}, 4);
  } else if (value_in(environment, "NESSIE_SERVERS") != NULL) {
    nessie_note((const char *[]){"LD_PRELOAD was taken out of the environment of ", program}, 2);
  }
}

REAL(execve)
NESSIE_EXPORT int execve(const char *path, char *const argv[], char *const envp[]) {
  watch(path, envp);
  return BEHIND(execve)(path, argv, envp);
}

REAL(execv)
NESSIE_EXPORT int execv(const char *path, char *const argv[]) {
  watch(path, environ);
  return BEHIND(execv)(path, argv);
}

REAL(execvpe)
NESSIE_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[]) {
  watch(file, envp);
  return BEHIND(execvpe)(file, argv, envp);
}

REAL(execvp)
NESSIE_EXPORT int execvp(const char *file, char *const argv[]) {
  watch(file, environ);
  return BEHIND(execvp)(file, argv);
}

REAL(posix_spawn)
NESSIE_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                              const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
  watch(path, envp);
  return BEHIND(posix_spawn)(pid, path, actions, attributes, argv, envp);
}

REAL(posix_spawnp)
NESSIE_EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                               const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
  watch(file, envp);
  return BEHIND(posix_spawnp)(pid, file, actions, attributes, argv, envp);
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
