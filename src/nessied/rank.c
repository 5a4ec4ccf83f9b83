/* SPDX-License-Identifier: BSD-3-Clause */
/* nessie-rank COMMAND...: stands for a service in the MPI job of a program (nessie run --mpmd). All processes of a job
 * have to initialise MPI, and finalising waits for all of them; a service must outlive that. So the service is a child
 * with a session of its own, which the launcher's signals do not reach, and this process is the rank: it does what MPI
 * asks of one and nothing else. On its stdin the child finds a byte when MPI has begun, and the end when MPI is over,
 * or this rank is gone. */
#define _GNU_SOURCE
#include <mpi.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the program's processes nothing is meant for the service. */
static void leave_staging(void) {
  static const char *const variables[] = {"LD_PRELOAD", "NESSIE_SERVERS", "NESSIE_BOARDS", "NESSIE_NOTES"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; ++i) unsetenv(variables[i]);
}

static pid_t start_service(char **command, int *life_line) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t service = fork();
  if (service == 0) {
    setsid();
    dup2(ends[0], STDIN_FILENO);
    leave_staging();
    execv(command[0], command);
    _exit(127);
  }
  close(ends[0]);
  *life_line = ends[1];
  return service;
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: nessie-rank COMMAND...; `nessie run --mpmd` starts it\n"), 2;
  int life_line = -1;
  const pid_t service = start_service(argv + 1, &life_line);
  signal(SIGPIPE, SIG_IGN);
  if (service < 0) fprintf(stderr, "nessie-rank: cannot start %s: %s\n", argv[1], strerror(errno));
  setenv("NESSIE_RANK", "service", 1); /* by which CommSplitter tells it from the program */
  MPI_Init(NULL, NULL);
  const ssize_t told = write(life_line, "b", 1);
  MPI_Finalize();
  close(life_line);
  (void)told; /* a service that is gone has nothing to hear */
  while (service > 0 && waitpid(service, NULL, 0) < 0 && errno == EINTR) continue;
  return 0;
}
