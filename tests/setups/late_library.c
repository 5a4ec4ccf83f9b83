/* SPDX-License-Identifier: BSD-3-Clause */
/* A library whose destructor still uses files, and finalizes MPI: after everything of the program that uses it. */
#include "late.h"

enum { kLength = 5000 };

static int ncid = -1, used;

static int create(const char *path) {
  int id, dim, var;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &id));
  CHECK(ncmpi_def_dim(id, "x", kLength * size, &dim));
  CHECK(ncmpi_def_var(id, "v", NC_DOUBLE, 1, &dim, &var));
  CHECK(ncmpi_def_var(id, "w", NC_DOUBLE, 1, &dim, &var));
  CHECK(ncmpi_enddef(id));
  return id;
}

static void put(int id, int var) {
  double data[kLength];
  const MPI_Offset start = kLength * rank, count = kLength;
  for (int i = 0; i < kLength; i++) data[i] = i + 0.5 * rank + var;
  CHECK(ncmpi_put_vara_double_all(id, var, &start, &count, data));
}

void late_begin(void) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  used = 1;
}

void late_open(void) {
  ncid = create("early.nc");
  put(ncid, 0);
}

__attribute__((destructor)) static void end(void) {
  if (!used) return;
  if (ncid >= 0) {
    put(ncid, 1);
    CHECK(ncmpi_close(ncid));
  }
  const int second = create("late.nc");
  put(second, 0);
  put(second, 1);
  CHECK(ncmpi_close(second));
  const int left_open = create("open.nc");
  put(left_open, 0);
  put(left_open, 1);
  SAY("the end of the library\n");
  MPI_Finalize();
}
