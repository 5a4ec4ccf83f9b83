/* SPDX-License-Identifier: BSD-3-Clause */
/* A plug-in that uses another MPI and another PnetCDF, for plugin_host. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

void run_plugin(void);

static MPI_Comm no_comm;
static MPI_Info no_info;

void run_plugin(void) {
  int rank = -1, ncid = -1, number = -1;
  MPI_Comm_rank(no_comm, &rank);
  const int created = ncmpi_create(no_comm, "plugin.txt", 0, no_info, &ncid);
  const int inquired = ncmpi_inq_files_opened(&number, NULL);
  const int closed = ncmpi_close(ncid);
  printf("rank %d: %d %d %d, id %d, %d files\n", rank, created, inquired, closed, ncid, number);
}
