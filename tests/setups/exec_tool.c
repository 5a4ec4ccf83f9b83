/* SPDX-License-Identifier: BSD-3-Clause */
/* A tool that says which function starts a program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static void say(const char *text) { (void)!write(STDOUT_FILENO, text, strlen(text)); }

#define TELLS(name, declaration, arguments)                       \
  int name declaration {                                          \
    say("tool: " #name "\n");                                     \
    return ((__typeof__(&name))dlsym(RTLD_NEXT, #name))arguments; \
  }
TELLS(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
TELLS(execv, (const char *path, char *const argv[]), (path, argv))
TELLS(execvp, (const char *file, char *const argv[]), (file, argv))
