/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI of the user's own, of which there is no more here than this. */
#include <mpi.h>

int MPI_Comm_rank(MPI_Comm comm, int *rank) { return PMPI_Comm_rank(comm, rank); }

int PMPI_Comm_rank(MPI_Comm comm, int *rank) {
  (void)comm;
  *rank = 0;
  return MPI_SUCCESS;
}
