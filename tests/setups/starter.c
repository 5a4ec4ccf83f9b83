/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts /bin/true in each way that a tool may want to see. */
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *arguments[] = {(char *)"true", NULL};

static void by_execve(void) { execve("/bin/true", arguments, environ); }
static void by_execv(void) { execv("/bin/true", arguments); }
static void by_execvp(void) { execvp("true", arguments); }

int main(void) {
  void (*const ways[])(void) = {by_execve, by_execv, by_execvp};
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      ways[i]();
      _exit(1);
    }
    waitpid(child, NULL, 0);
  }
  return 0;
}
