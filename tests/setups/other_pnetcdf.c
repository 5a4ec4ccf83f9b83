/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses a PnetCDF of the user's own, of which there is no more here than this. */
#include <mpi.h>
#include <stdio.h>

const char *ncmpi_inq_libvers(void);
int ncmpi_inq_files_opened(int *num, int *ncids);

int main(int argc, char **argv) {
  int number = -1, error;
  MPI_Init(&argc, &argv);
  error = ncmpi_inq_files_opened(&number, NULL);
  printf("%s: %d, %d files\n", ncmpi_inq_libvers(), error, number);
  MPI_Finalize();
  return 0;
}
