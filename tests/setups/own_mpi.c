/* SPDX-License-Identifier: BSD-3-Clause */
/* A serial program that brings a stub of MPI, as libraries for laptops do, and happens to ask PnetCDF for its version.
 */
#include <pnetcdf.h>
#include <stdio.h>

int MPI_Comm_rank(MPI_Comm comm, int *rank) {
  (void)comm;
  *rank = 0;
  return 0;
}

int main(void) {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("%d %s\n", rank, ncmpi_strerrno(NC_EBADID));
  return 0;
}
