/* SPDX-License-Identifier: BSD-3-Clause */
/* closed HOW FILE: makes a file that its user may not open: it gets that mode when it is created ("mask"), or before
 * its definitions end ("chmod"). For one process: natively the others open the file by its name. */
#include "setups.h"

#include <string.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
  int ncid, dims[2], vars[2], values[1000], read_back[1000];
  const MPI_Offset start[] = {1, 0}, count[] = {1, 1000};
  begin(&argc, &argv);
  const char *path = argv[2];
  for (int i = 0; i < 1000; ++i) values[i] = i;
  if (strcmp(argv[1], "mask") == 0) umask(0777);
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", 1000, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 2, dims, &vars[0]));
  if (strcmp(argv[1], "chmod") == 0) chmod(path, 0);
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_vara_int_all(ncid, vars[0], start, count, values));
  CHECK(ncmpi_redef(ncid));
  CHECK(ncmpi_def_var(ncid, "w", NC_INT, 2, dims, &vars[1]));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_vara_int_all(ncid, vars[1], start, count, values));
  CHECK(ncmpi_get_vara_int_all(ncid, vars[0], start, count, read_back));
  SAY("%s\n", memcmp(values, read_back, sizeof values) == 0 ? "read" : "read wrong");
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
