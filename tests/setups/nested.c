/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls PnetCDF while a call of it is under way, as a signal handler may: in a callback of MPI's. */
#include "setups.h"

static int first = -1, code;

static int put_within(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
  const MPI_Offset start = rank, count = 1;
  const int value = 99;
  (void)comm, (void)key, (void)extra, (void)in, (void)out;
  code = ncmpi_put_vara_int_all(first, 0, &start, &count, &value);
  return *flag = 0, MPI_SUCCESS;
}

static int make(MPI_Comm comm, const char *path) {
  int ncid, dim, var;
  CHECK(ncmpi_create(comm, path, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", size, &dim));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
  CHECK(ncmpi_enddef(ncid));
  return ncid;
}

static void put(int ncid, int value) {
  const MPI_Offset start = rank, count = 1;
  CHECK(ncmpi_put_vara_int_all(ncid, 0, &start, &count, &value));
  CHECK(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  int key;
  MPI_Comm comm;
  begin(&argc, &argv);
  first = make(MPI_COMM_WORLD, "first.nc");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_keyval(put_within, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(comm, key, NULL);
  const int second = make(comm, "second.nc");
  SAY("within: %s\n", ncmpi_strerrno(code));
  put(first, 1);
  put(second, 2);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
