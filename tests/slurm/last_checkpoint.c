/* SPDX-License-Identifier: BSD-3-Clause */
/* As programs do that batch systems warn: computes until SIGTERM or SIGUSR1 comes, then writes a last checkpoint,
 * last.nc, and ends well. That it computes it says by a file, "ready". */
#include "setups.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t told;

static void note(int number) { told = number; }

static int is_over(void) {
  int mine = told, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return all != 0;
}

static void write_checkpoint(const char *path) {
  enum { kLength = 100000 };
  static double values[kLength];
  const MPI_Offset start = (MPI_Offset)kLength * rank, count = kLength;
  int ncid, dim, var;
  for (int i = 0; i < kLength; ++i) values[i] = rank + i * 0.5;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", (MPI_Offset)kLength * size, &dim));
  CHECK(ncmpi_def_var(ncid, "state", NC_DOUBLE, 1, &dim, &var));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_vara_double_all(ncid, var, &start, &count, values));
  CHECK(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  signal(SIGTERM, note);
  signal(SIGUSR1, note);
  write_checkpoint("first.nc");
  FILE *ready = rank == 0 ? fopen("ready", "w") : NULL;
  if (ready != NULL) fclose(ready);
  while (!is_over()) usleep(20000);
  write_checkpoint("last.nc");
  MPI_Finalize();
  return 0;
}
