/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective calls with arguments that differ: WHO is the process whose arguments are other ones. Says what each
 * process gets. Natively, with PNETCDF_SAFE_MODE, all learn that they differ. */
#include "setups.h"

#include <string.h>

static int who, other, ncid;

/* The arguments tell the one process by `other`. */
#define SHOW(call) say_codes(#call, call)

static void dimensions(void) {
  int dim;
  SHOW(ncmpi_def_dim(ncid, other ? "a" : "b", 4, &dim));
  SHOW(ncmpi_def_dim(ncid, "c", other ? 4 : 5, &dim));
  SHOW(ncmpi_def_dim(ncid, other ? "a" : "b", other ? 4 : 5, &dim));
  SHOW(ncmpi_def_dim(ncid, "c", other ? -1 : 5, &dim));
  SHOW(ncmpi_def_dim(ncid, other ? "x" : "d", 5, &dim));
  SHOW(ncmpi_def_dim(ncid, other ? "" : "d", 5, &dim));
  SHOW(ncmpi_def_dim(ncid, other ? "a/b" : "d", 5, &dim));
  SHOW(ncmpi_def_dim(ncid, "a/b", 5, &dim));
  SHOW(ncmpi_def_dim(ncid, other ? "again" : "d", other ? NC_UNLIMITED : 5, &dim));
  SHOW(ncmpi_rename_dim(ncid, 1, other ? "e" : "f"));
  SHOW(ncmpi_rename_dim(ncid, other ? 0 : 1, "g"));
  SHOW(ncmpi_rename_dim(ncid, other ? 9 : 1, "g"));
  SHOW(ncmpi_rename_dim(ncid, 1, other ? "t" : "g"));
}

static void variables(void) {
  int var, dims[2] = {0, 1}, back[2] = {other ? 1 : 0, 1};
  const int bad[2] = {0, other ? 7 : 1};
  SHOW(ncmpi_def_var(ncid, other ? "a" : "b", NC_INT, 2, dims, &var));
  SHOW(ncmpi_def_var(ncid, "c", other ? NC_INT : NC_FLOAT, 2, dims, &var));
  SHOW(ncmpi_def_var(ncid, "c", NC_INT, other ? 1 : 2, dims, &var));
  SHOW(ncmpi_def_var(ncid, "c", NC_INT, 2, back, &var));
  SHOW(ncmpi_def_var(ncid, "c", NC_INT, 2, bad, &var));
  SHOW(ncmpi_def_var(ncid, "c", NC_INT, 2, other ? NULL : dims, &var));
  SHOW(ncmpi_def_var(ncid, "c", other ? NC_INT64 : NC_INT, 2, dims, &var));
  SHOW(ncmpi_def_var(ncid, other ? "v" : "c", NC_INT, 2, dims, &var));
  SHOW(ncmpi_def_var(ncid, other ? "c" : "d", NC_INT, other ? 0 : 2, dims, &var));
  SHOW(ncmpi_rename_var(ncid, 0, other ? "e" : "f"));
  SHOW(ncmpi_rename_var(ncid, other ? 1 : 0, "g"));
  SHOW(ncmpi_rename_var(ncid, other ? NC_GLOBAL : 0, "g"));
  SHOW(ncmpi_rename_var(ncid, 0, other ? "w" : "g"));
}

static void attributes(void) {
  const int one[2] = {1, 2}, two[2] = {1, other ? 3 : 2};
  SHOW(ncmpi_put_att_int(ncid, NC_GLOBAL, other ? "a" : "b", NC_INT, 2, one));
  SHOW(ncmpi_put_att_int(ncid, other ? 0 : NC_GLOBAL, "a", NC_INT, 2, one));
  SHOW(ncmpi_put_att_int(ncid, NC_GLOBAL, "a", other ? NC_INT : NC_FLOAT, 2, one));
  SHOW(ncmpi_put_att_int(ncid, NC_GLOBAL, "a", NC_INT, other ? 1 : 2, one));
  SHOW(ncmpi_put_att_int(ncid, NC_GLOBAL, "a", NC_INT, 2, two));
  SHOW(ncmpi_put_att_int(ncid, NC_GLOBAL, "a", NC_INT, other ? -2 : 2, one));
  SHOW(ncmpi_put_att_int(ncid, NC_GLOBAL, "a", other ? NC_CHAR : NC_INT, 2, one));
  SHOW(ncmpi_put_att_int(ncid, NC_GLOBAL, "a", other ? 99 : NC_INT, 2, one));
  SHOW(ncmpi_put_att_int(ncid, other ? 99 : NC_GLOBAL, "a", NC_INT, 2, one));
  SHOW(ncmpi_put_att_text(ncid, NC_GLOBAL, "t", 3, other ? "one" : "two"));
  SHOW(ncmpi_put_att(ncid, NC_GLOBAL, "u", NC_INT, 2, two));
  SHOW(ncmpi_put_att_text(ncid, NC_GLOBAL, "same", 3, "one"));
  SHOW(ncmpi_rename_att(ncid, NC_GLOBAL, other ? "same" : "other", "new"));
  SHOW(ncmpi_rename_att(ncid, NC_GLOBAL, "same", other ? "new" : "old"));
  SHOW(ncmpi_rename_att(ncid, other ? 0 : NC_GLOBAL, "same", "new"));
  SHOW(ncmpi_rename_att(ncid, NC_GLOBAL, "same", other ? "a/b" : "old"));
  SHOW(ncmpi_copy_att(ncid, NC_GLOBAL, other ? "same" : "other", ncid, 0));
  SHOW(ncmpi_copy_att(ncid, NC_GLOBAL, "same", ncid, other ? 0 : 1));
  SHOW(ncmpi_copy_att(ncid, NC_GLOBAL, "same", ncid, other ? 99 : 1));
  SHOW(ncmpi_del_att(ncid, NC_GLOBAL, other ? "same" : "other"));
  SHOW(ncmpi_del_att(ncid, other ? 0 : NC_GLOBAL, "same"));
  SHOW(ncmpi_del_att(ncid, NC_GLOBAL, other ? "" : "same"));
}

static void fill_modes(void) {
  const float one = 1, two = other ? 2 : 1;
  int mode;
  SHOW(ncmpi_set_fill(ncid, other ? NC_FILL : NC_NOFILL, &mode));
  SHOW(ncmpi_set_fill(ncid, other ? 77 : NC_FILL, &mode));
  SHOW(ncmpi_def_var_fill(ncid, other ? 0 : 1, 0, NULL));
  SHOW(ncmpi_def_var_fill(ncid, other ? 99 : 1, 0, NULL));
  SHOW(ncmpi_def_var_fill(ncid, 1, other, NULL));
  SHOW(ncmpi_def_var_fill(ncid, 1, 0, other ? &one : NULL));
  SHOW(ncmpi_def_var_fill(ncid, 1, 0, &two));
  SHOW(ncmpi_def_var_fill(ncid, 0, 0, NULL));
  SHOW(ncmpi__enddef(ncid, other ? 4 : 8, 4, 0, 4));
  SHOW(ncmpi__enddef(ncid, other ? -4 : 8, 4, 0, 4));
}

static void data(void) {
  const MPI_Offset start[2] = {0, 0}, count[2] = {1, other ? 99 : 4}, records = 3;
  MPI_Offset *starts[1] = {(MPI_Offset *)start}, *counts[1] = {(MPI_Offset *)count}, length = -1;
  int values[128] = {0}, *memory[1] = {values}, varids[1] = {other ? 99 : 0};
  SHOW(ncmpi_put_vara_int_all(ncid, 0, start, count, values));
  SHOW(ncmpi_put_varn_int_all(ncid, 0, 1, starts, counts, values));
  SHOW(ncmpi_mput_vara_int_all(ncid, 1, varids, starts, starts, memory));
  SHOW(ncmpi_put_vard_all(ncid, other ? NC_GLOBAL : 0, MPI_INT, values, 1, MPI_INT));
  SHOW(ncmpi_get_vara_int_all(ncid, other ? 99 : 1, start, start, values));
  SHOW(ncmpi_fill_var_rec(ncid, 0, other ? records : 2));
  SHOW(ncmpi_fill_var_rec(ncid, other ? 1 : 0, 2));
  SHOW(ncmpi_fill_var_rec(ncid, other ? 2 : 0, 2));
  SHOW(ncmpi_fill_var_rec(ncid, 0, 2));
  SHOW(ncmpi_inq_dimlen(ncid, 0, &length));
  SAY("%lld records\n", (long long)length);
}

/* A file with records v and w, and x that is not filled; all that follows goes wrong for one reason or another. */
static void make(void) {
  int dims[2], var;
  SHOW(ncmpi_create(MPI_COMM_WORLD, "out.nc", other ? NC_64BIT_OFFSET : NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", 4, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 2, dims, &var));
  CHECK(ncmpi_def_var(ncid, "w", NC_FLOAT, 1, dims + 1, &var));
  CHECK(ncmpi_def_var(ncid, "x", NC_INT, 2, dims, &var));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  who = argc > 1 ? atoi(argv[1]) : 0;
  other = rank == who;
  make();
  dimensions();
  variables();
  attributes();
  fill_modes();
  SHOW(ncmpi_enddef(ncid));
  data();
  SHOW(ncmpi_def_var(ncid, other ? "late" : "later", NC_INT, 0, NULL, &(int){0}));
  SHOW(ncmpi_rename_var(ncid, 0, other ? "a" : "b"));
  SHOW(ncmpi_rename_var(ncid, 0, "longer"));
  CHECK(ncmpi_close(ncid));
  SHOW(ncmpi_open(MPI_COMM_WORLD, "out.nc", other ? NC_WRITE : NC_NOWRITE, MPI_INFO_NULL, &ncid));
  SHOW(ncmpi_put_att_text(ncid, NC_GLOBAL, other ? "c" : "d", 3, "one"));
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
