/* SPDX-License-Identifier: BSD-3-Clause */
/* Started without stderr, it opens a file of its own, "data", which gets stderr's descriptor; then it writes FILE,
 * which is native in the end. */
#include "no_elements.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int ncid, dim, var;
  const int fd = open("data", O_RDWR | O_CREAT, 0644);
  if (fd != STDERR_FILENO) return 8;
  begin(&argc, &argv);
  CHECK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", 2, &dim));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_var_int_all(ncid, var, (const int[]){1, 2}));
  CHECK(hand_back(ncid));
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
