/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of which nobody writes the last columns, and every other one of the second variable. */
#include "setups.h"

int main(int argc, char **argv) {
  int ncid, dims[2], table, line;
  begin(&argc, &argv);
  CHECK(ncmpi_create(MPI_COMM_WORLD, "holes.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", 4 * size + 4, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "table", NC_INT, 2, dims, &table));
  CHECK(ncmpi_def_var(ncid, "line", NC_DOUBLE, 1, dims, &line));
  CHECK(ncmpi_enddef(ncid));
  for (int step = 0; step < 8; step++) {
    const MPI_Offset start[] = {2 * step, 4 * rank}, count[] = {1, 4}, place[] = {2 * (step * size + rank)},
                     one[] = {1};
    const int row[] = {step + 1, step + 2, step + 3, rank + 1};
    const double value = step + 0.5;
    CHECK(ncmpi_put_vara_int_all(ncid, table, start, count, row));
    CHECK(ncmpi_put_vara_double_all(ncid, line, place, one, &value));
    int back[4];
    CHECK(ncmpi_get_vara_int_all(ncid, table, start, count, back));
    if (back[3] != rank + 1) MPI_Abort(MPI_COMM_WORLD, 4);
  }
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
