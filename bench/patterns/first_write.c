/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a user waits for before a simulation is under way: MPI begins, and every process writes a first piece. It prints
 * "written" when all of them have.
 *
 * Build:   mpicc -O2 first_write.c pattern.c -o first_write -lpnetcdf
 * Run:     mpiexec -n 8 ./first_write --prefix /tmp/first
 * Options: --mpi-only  nothing is written    and those of all patterns: pattern.h
 */
#include "pattern.h"

#include <stdio.h>

enum { kNumbers = 1024 }; /* of each process */

static int write_first(const Pattern *p) {
  static double numbers[kNumbers];
  const MPI_Offset all[3] = {1, p->processes, kNumbers}, start[3] = {0, p->rank, 0}, count[3] = {1, 1, kNumbers};
  int ncid, dims[2], variable;
  check(ncmpi_create(MPI_COMM_WORLD, file_name(p, "first", 1), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  check(ncmpi_def_dim(ncid, "process", p->processes, &dims[0]));
  check(ncmpi_def_dim(ncid, "number", kNumbers, &dims[1]));
  check(ncmpi_def_var(ncid, "data", NC_DOUBLE, 2, dims, &variable));
  check(ncmpi_enddef(ncid));
  walk(numbers, 0, 1, all, start, count, 0);
  check(ncmpi_put_vara_double_all(ncid, variable, start + 1, count + 1, numbers));
  return ncid;
}

int main(int argc, char **argv) {
  Pattern p = pattern_begin(&argc, &argv, 1);
  const int mpi_only = flag_option(argc, argv, "--mpi-only");
  pattern_ready(&p, argc, argv);
  const int ncid = mpi_only ? -1 : write_first(&p);
  MPI_Barrier(MPI_COMM_WORLD);
  if (p.rank == 0) puts("written"), fflush(stdout);
  if (!mpi_only) check(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
