/* SPDX-License-Identifier: BSD-3-Clause */
/* Each process asks for another level of threads, as where several programs are one job. They write files, one after
 * the other. */
#include "setups.h"

static int rank_before_init(void) {
  static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  for (int i = 0; i < 2; i++)
    if (getenv(variables[i]) != NULL) return atoi(getenv(variables[i]));
  return 0;
}

static void write_file(const char *name) {
  const MPI_Offset at = rank;
  int ncid, dim, var;
  CHECK(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", size, &dim));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_var1_int_all(ncid, var, &at, &rank));
  CHECK(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE, MPI_THREAD_FUNNELED};
  int level;
  MPI_Init_thread(&argc, &argv, levels[rank_before_init() % 3], &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  write_file("first.nc");
  write_file("second.nc");
  MPI_Finalize();
  return 0;
}
