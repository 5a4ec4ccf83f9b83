/* SPDX-License-Identifier: BSD-3-Clause */
/* job HOW FILE: writes a file with PnetCDF, each process its part, and ends as HOW says: "finalize"; "exit", without
 * MPI_Finalize; "open", with the file still open; "fork", where the child of the first process writes one more file;
 * "level", which tells the level of threads; "linger", which waits to be killed before anything is closed; "abort",
 * which calls MPI_Abort; "abort-last", where the last process does, and the others when the launcher ends them. */
#include <mpi.h>
#include <pnetcdf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kValues = 1 << 16 };

static void check(int code, const char *what) {
  if (code == NC_NOERR) return;
  fprintf(stderr, "job: %s: %s\n", what, ncmpi_strerror(code));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int write_file(MPI_Comm comm, const char *path) {
  static double values[kValues];
  int file, dim, variable, rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const MPI_Offset start = (MPI_Offset)rank * kValues, count = kValues;
  for (int i = 0; i < kValues; ++i) values[i] = (double)(start + i);
  check(ncmpi_create(comm, path, NC_CLOBBER, MPI_INFO_NULL, &file), "create");
  check(ncmpi_def_dim(file, "x", (MPI_Offset)kValues * size, &dim), "def_dim");
  check(ncmpi_def_var(file, "v", NC_DOUBLE, 1, &dim, &variable), "def_var");
  check(ncmpi_enddef(file), "enddef");
  check(ncmpi_put_vara_double_all(file, variable, &start, &count, values), "put");
  return file;
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "job.nc";
  char other[4096];
  int level = 0, rank = 0, size = 1;
  MPI_Init(&argc, &argv);
  MPI_Query_thread(&level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int file = write_file(MPI_COMM_WORLD, path);
  if (strcmp(how, "linger") == 0) {
    if (rank == 0) printf("written\n"), fflush(stdout);
    sleep(60);
  }
  if (strcmp(how, "open") != 0) check(ncmpi_close(file), "close");
  if (strcmp(how, "level") == 0 && rank == 0) printf("level %d\n", level);
  if (strcmp(how, "exit") == 0) exit(3);
  if (strcmp(how, "abort") == 0 || (strcmp(how, "abort-last") == 0 && rank == size - 1)) MPI_Abort(MPI_COMM_WORLD, 5);
  if (strcmp(how, "abort-last") == 0) sleep(60), MPI_Abort(MPI_COMM_WORLD, 5); /* SIGTERM ends the sleep */
  if (strcmp(how, "fork") == 0 && rank == 0) {
    const pid_t child = fork();
    snprintf(other, sizeof other, "%s.child", path);
    if (child == 0) {
      check(ncmpi_close(write_file(MPI_COMM_SELF, other)), "close in the child");
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  MPI_Finalize();
  return 0;
}
