/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that is killed, and started anew with the same file. Argument: what becomes of it. */
#include "setups.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static int create(const char *path) {
  int ncid, dims[2], var;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", 1000, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 2, dims, &var));
  return ncid;
}

static void put(int ncid, int records) {
  static int row[1000];
  for (int record = 0; record < records; record++) {
    const MPI_Offset start[2] = {record, 0}, count[2] = {1, 1000};
    for (int i = 0; i < 1000; i++) row[i] = 1000 * records + i;
    CHECK(ncmpi_put_vara_int_all(ncid, 0, start, count, row));
  }
}

static void bystander(void) { /* another program of the run, which goes on */
  const int ncid = create("bystander.nc");
  CHECK(ncmpi_enddef(ncid));
  put(ncid, 1);
  fclose(fopen("there", "w"));
  for (int i = 0; i < 6000 && access("go", F_OK) != 0; i++) usleep(10000);
  CHECK(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  const char *way = argc > 1 ? argv[1] : "whole";
  if (strcmp(way, "bystander") == 0) {
    bystander();
  } else {
    const int ncid = create("out.nc");
    if (strcmp(way, "killed-while-defining") == 0) raise(SIGKILL);
    CHECK(ncmpi_enddef(ncid));
    put(ncid, strcmp(way, "whole") == 0 ? 3 : 7);
    if (strcmp(way, "killed-in-data-mode") == 0) raise(SIGKILL);
    CHECK(ncmpi_close(ncid));
    SAY("whole\n");
  }
  MPI_Finalize();
  return 0;
}
