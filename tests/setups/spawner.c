/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts two more of itself, with whom it writes a file; they write one without it. */
#include "setups.h"

static void write_file(MPI_Comm comm, const char *path) {
  int ncid, dim, var, here;
  MPI_Comm_rank(comm, &here);
  const MPI_Offset start = here, count = 1;
  CHECK(ncmpi_create(comm, path, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", 8, &dim));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
  CHECK(ncmpi_set_fill(ncid, NC_FILL, NULL));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_vara_int_all(ncid, var, &start, &count, &here));
  CHECK(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  MPI_Comm parent, both, all;
  begin(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  const int is_parent = parent == MPI_COMM_NULL;
  write_file(MPI_COMM_WORLD, is_parent ? "parent.nc" : "children.nc");
  if (is_parent)
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
  else
    both = parent;
  MPI_Intercomm_merge(both, !is_parent, &all);
  write_file(all, "all.nc");
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&both);
  MPI_Finalize();
  return 0;
}
