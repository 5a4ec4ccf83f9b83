/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts that depend on what native PnetCDF keeps in memory of a file: alignments, then define mode again, several
 * times, with records in between. Arguments: how many files. */
#include "setups.h"

enum { kX = 4000 };

static void define(int ncid, int number, int t, int x) {
  const int dims[2] = {t, x};
  char name[16];
  int var;
  snprintf(name, sizeof name, "fixed%d", number);
  CHECK(ncmpi_def_var(ncid, name, NC_INT, 1, &x, &var));
  snprintf(name, sizeof name, "record%d", number);
  CHECK(ncmpi_def_var(ncid, name, NC_DOUBLE, 2, dims, &var));
}

static void put(int ncid, int number, int record) {
  static double data[kX];
  static int more[kX];
  const MPI_Offset start[2] = {record, (MPI_Offset)kX * rank}, count[2] = {1, kX};
  for (int i = 0; i < kX; i++) data[i] = number * 1e6 + record * 1e4 + rank * 100 + i * 1e-3, more[i] = (int)data[i];
  CHECK(ncmpi_put_vara_int_all(ncid, 2 * number, start + 1, count + 1, more));
  CHECK(ncmpi_put_vara_double_all(ncid, 2 * number + 1, start, count, data));
}

static void write_file(int n) {
  char path[32];
  int ncid, t, x;
  snprintf(path, sizeof path, "layout%02d.nc", n);
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &t));
  CHECK(ncmpi_def_dim(ncid, "x", (MPI_Offset)kX * size, &x));
  define(ncid, 0, t, x);
  CHECK(ncmpi__enddef(ncid, 100 * n, 64, 200, n % 2 ? 512 : 4));
  for (int record = 0; record < 3; record++) put(ncid, 0, record);
  CHECK(ncmpi_redef(ncid));
  define(ncid, 1, t, x);
  CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "note", 5, "again"));
  CHECK(ncmpi_enddef(ncid));
  put(ncid, 1, 4);
  CHECK(ncmpi_redef(ncid));
  define(ncid, 2, t, x);
  CHECK(ncmpi__enddef(ncid, 0, 128, 0, 8));
  put(ncid, 2, 5);
  for (int record = 0; record < 6; record++) put(ncid, 0, record), put(ncid, 1, record), put(ncid, 2, record);
  CHECK(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  const int files = argc > 1 ? atoi(argv[1]) : 4;
  for (int n = 0; n < files; n++) write_file(n);
  SAY("%d files\n", files);
  MPI_Finalize();
  return 0;
}
