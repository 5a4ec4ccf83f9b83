/* SPDX-License-Identifier: BSD-3-Clause */
/* A file with a variable v, and one w with records, of `x` values of each process. */
#ifndef NESSIE_SETUPS_TWO_VARIABLES_H
#define NESSIE_SETUPS_TWO_VARIABLES_H

#include "setups.h"

static int create_two_variables(const char *path, MPI_Offset x) {
  int ncid, dims[2], v, w;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", x * size, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, dims + 1, &v));
  CHECK(ncmpi_def_var(ncid, "w", NC_INT, 2, dims, &w));
  CHECK(ncmpi_enddef(ncid));
  return ncid;
}

#endif
