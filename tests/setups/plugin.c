/* SPDX-License-Identifier: BSD-3-Clause */
/* A plug-in that is linked to PnetCDF, for plugin_host. The first that is closed finalizes MPI, unless PLUGIN_FOLLOWS.
 */
#include "setups.h"

void run_plugin(void);

void run_plugin(void) {
  int ncid, dim, var, dimensions = -1, back[10] = {0}, data[10];
  MPI_Offset length = -1;
  int is_initialized;
  MPI_Initialized(&is_initialized);
  if (!is_initialized) MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const MPI_Offset start = 10 * rank, count = 10;
  for (int i = 0; i < 10; i++) data[i] = rank * 10 + i;
  CHECK(ncmpi_create(MPI_COMM_WORLD, "plugin.nc", NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", 10 * size, &dim));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_vara_int_all(ncid, var, &start, &count, data));
  CHECK(ncmpi_inq_dimlen(ncid, dim, &length));
  CHECK(ncmpi_get_vara_int_all(ncid, var, &start, &count, back));
  CHECK(ncmpi_close(ncid));
  CHECK(ncmpi_open(MPI_COMM_WORLD, "plugin.nc", NC_NOWRITE, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_inq_ndims(ncid, &dimensions));
  CHECK(ncmpi_close(ncid));
  SAY("%lld long, read %d, %d dimensions\n", (long long)length, back[9], dimensions);
}

__attribute__((destructor)) static void end(void) {
  int is_initialized, is_finalized;
  if (getenv("PLUGIN_FOLLOWS") != NULL) return;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  if (is_initialized && !is_finalized) MPI_Finalize();
}
