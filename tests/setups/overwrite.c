/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the first value of each variable of the file that is its argument. */
#include "setups.h"

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int ncid, variables;
  CHECK(ncmpi_open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "out.nc", NC_WRITE, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_inq_nvars(ncid, &variables));
  for (int v = 0; v < variables; v++) {
    const MPI_Offset first[8] = {0};
    CHECK(ncmpi_put_var1_int_all(ncid, v, first, &(int){7}));
  }
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
