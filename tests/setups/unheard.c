/* SPDX-License-Identifier: BSD-3-Clause */
/* Started without stderr, it opens a file of its own, "data", which gets stderr's descriptor; then it writes FILE. */
#include "setups.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int ncid;
  const int fd = open("data", O_RDWR | O_CREAT, 0644);
  if (fd != STDERR_FILENO) return 8;
  begin(&argc, &argv);
  CHECK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
