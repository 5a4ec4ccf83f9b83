/* SPDX-License-Identifier: BSD-3-Clause */
/* Two files, one after the other, and a pause in which the staging servers may die. Argument: where it is. */
#include "setups.h"

#include <string.h>
#include <unistd.h>

enum { kColumns = 1000 };

static const char *where;

static void pause_at(const char *here) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(here, where) != 0) return;
  if (rank == 0) fclose(fopen("there", "w"));
  for (int i = 0; i < 6000 && access("go", F_OK) != 0; i++) usleep(10000);
  MPI_Barrier(MPI_COMM_WORLD);
}

static int put(int ncid, int varid, MPI_Offset record) {
  static int row[kColumns];
  const MPI_Offset start[2] = {record, (MPI_Offset)rank * kColumns}, count[2] = {1, kColumns};
  for (int i = 0; i < kColumns; i++) row[i] = (int)record * 100000 + rank * kColumns + i;
  return ncmpi_put_vara_int_all(ncid, varid, start, count, row);
}

static void define(int ncid) {
  int dims[2], var;
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", (MPI_Offset)kColumns * size, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 2, dims, &var));
  CHECK(ncmpi_def_var(ncid, "w", NC_FLOAT, 2, dims, &var));
  CHECK(ncmpi_def_var_fill(ncid, 1, 0, NULL));
  CHECK(ncmpi_put_att_text(ncid, 0, "units", 1, "K"));
}

static void write_file(const char *path) {
  int ncid;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  define(ncid);
  pause_at("defining");
  CHECK(ncmpi_enddef(ncid));
  pause_at("defined");
  CHECK(put(ncid, 0, 0));
  CHECK(ncmpi_sync(ncid));
  pause_at("synced");
  CHECK(put(ncid, 0, 1));
  pause_at("unsynced");
  if (strcmp(where, "unsynced") == 0)
    say_codes("close", ncmpi_close(ncid));
  else
    CHECK(ncmpi_close(ncid));
}

static void append(const char *path) {
  static int row[kColumns];
  const MPI_Offset start[2] = {1, (MPI_Offset)rank * kColumns}, count[2] = {1, kColumns};
  int ncid, wrong = 0;
  CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &ncid));
  pause_at("opened");
  CHECK(ncmpi_get_vara_int_all(ncid, 0, start, count, row));
  for (int i = 0; i < kColumns; i++) wrong += row[i] != 100000 + rank * kColumns + i;
  CHECK(put(ncid, 0, 2));
  CHECK(ncmpi_close(ncid));
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SAY("%s: %d wrong\n", path, wrong);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  where = argc > 1 ? argv[1] : "";
  pause_at("begun");
  write_file("a.nc");
  pause_at("closed");
  where = "";
  write_file("b.nc");
  where = argc > 1 ? argv[1] : "";
  if (strcmp(where, "unsynced") != 0) append("a.nc");
  MPI_Finalize();
  return 0;
}
