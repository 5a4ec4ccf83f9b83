/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a file and writes a variable of 24 MiB: large_writes FILE
 * runs|wrong|other|columns|pending|independent|filled|laid. A rank writes its rows; or its columns. wrong: rank 0
 * behind the end, and all again; other: rank 0 has written by another handle before; pending: rank 0 has posted a
 * request; independent: rank 1 has written by itself; filled: in fill mode; laid: with a layout of its own. Then the
 * file gets another variable, and records.
 */
#include "setups.h"

#include <string.h>

enum { kRows = 1024, kColumns = 3072 };

static int is(const char *how, const char *name) { return strcmp(how, name) == 0; }

static void define(int ncid, const char *how, int *varids) {
  int dims[3];
  const float missing = -1;
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "y", kRows, &dims[1]));
  CHECK(ncmpi_def_dim(ncid, "x", kColumns, &dims[2]));
  CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 5, "large"));
  CHECK(ncmpi_def_var(ncid, "s", NC_INT, 1, &dims[1], &varids[0]));
  CHECK(ncmpi_def_var(ncid, "v", NC_DOUBLE, 2, &dims[1], &varids[1]));
  CHECK(ncmpi_put_att_text(ncid, varids[1], "units", 1, "m"));
  CHECK(ncmpi_def_var(ncid, "r", NC_FLOAT, 2, dims, &varids[2]));
  CHECK(ncmpi_put_att_float(ncid, varids[2], "_FillValue", NC_FLOAT, 1, &missing));
  if (is(how, "filled")) CHECK(ncmpi_set_fill(ncid, NC_FILL, NULL));
  CHECK(is(how, "laid") ? ncmpi__enddef(ncid, 4096, 512, 0, 512) : ncmpi_enddef(ncid));
}

/* What was done to the file before it is written in large pieces. */
static void begin_otherwise(int ncid, const char *file, const char *how, const int *varids, int *request) {
  const MPI_Offset first[] = {3}, one[] = {1};
  static const int seven = 7;
  int other;
  if (is(how, "other") && rank == 0) {
    CHECK(ncmpi_open(MPI_COMM_SELF, file, NC_WRITE, MPI_INFO_NULL, &other));
    CHECK(ncmpi_put_vara_int_all(other, varids[0], first, one, &seven));
    CHECK(ncmpi_close(other));
  }
  if (is(how, "pending") && rank == 0) CHECK(ncmpi_iput_vara_int(ncid, varids[0], first, one, &seven, request));
  if (is(how, "independent")) {
    CHECK(ncmpi_begin_indep_data(ncid));
    if (rank == 1) CHECK(ncmpi_put_vara_int(ncid, varids[0], first, one, &seven));
    CHECK(ncmpi_end_indep_data(ncid));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void write_parts(int ncid, int varid, const char *how) {
  MPI_Offset start[] = {0, 0}, count[] = {kRows, kColumns};
  const int axis = is(how, "columns") ? 1 : 0;
  count[axis] /= size;
  start[axis] = rank * count[axis];
  double *values = malloc((size_t)(count[0] * count[1]) * sizeof *values);
  for (MPI_Offset i = 0; i < count[0] * count[1]; ++i)
    values[i] = (double)((start[0] + i / count[1]) * kColumns + start[1] + i % count[1]);
  const MPI_Offset behind[] = {kRows, 0};
  if (is(how, "wrong"))
    say_codes("put", ncmpi_put_vara_double_all(ncid, varid, rank == 0 ? behind : start, count, values));
  CHECK(ncmpi_put_vara_double_all(ncid, varid, start, count, values));
  free(values);
}

static void write_records(int ncid, int varid, int records) {
  MPI_Offset start[] = {records - 1, rank * (kRows / size)}, count[] = {1, kRows / size};
  float *values = malloc((size_t)count[1] * sizeof *values);
  for (MPI_Offset i = 0; i < count[1]; ++i) values[i] = (float)(start[1] + i);
  CHECK(ncmpi_put_vara_float_all(ncid, varid, start, count, values));
  free(values);
}

static void extend(int ncid, int *varid) {
  const int dims[] = {0, 1};
  char history[600];
  memset(history, 'h', sizeof history);
  CHECK(ncmpi_redef(ncid));
  CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "history", sizeof history, history));
  CHECK(ncmpi_def_var(ncid, "q", NC_FLOAT, 2, dims, varid));
  CHECK(ncmpi_enddef(ncid));
}

static void say_sizes(int ncid) {
  int fixed, of_records, variables;
  MPI_Offset put, records;
  CHECK(ncmpi_inq_num_fix_vars(ncid, &fixed));
  CHECK(ncmpi_inq_num_rec_vars(ncid, &of_records));
  CHECK(ncmpi_inq_nvars(ncid, &variables));
  CHECK(ncmpi_inq_put_size(ncid, &put));
  CHECK(ncmpi_inq_dimlen(ncid, 0, &records));
  SAY("%d + %d = %d variables, %lld records, put %s\n", fixed, of_records, variables, (long long)records,
      put >= kRows / size * kColumns * 8 ? "all" : "less");
}

int main(int argc, char **argv) {
  int ncid, varids[4], request = NC_REQ_NULL, status = NC_NOERR;
  begin(&argc, &argv);
  const char *how = argv[2];
  CHECK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_64BIT_DATA | NC_NOCLOBBER, MPI_INFO_NULL, &ncid));
  define(ncid, how, varids);
  begin_otherwise(ncid, argv[1], how, varids, &request);
  write_parts(ncid, varids[1], how);
  CHECK(ncmpi_wait_all(ncid, request == NC_REQ_NULL ? 0 : 1, &request, &status));
  CHECK(status);
  write_records(ncid, varids[2], 2);
  say_sizes(ncid);
  extend(ncid, &varids[3]);
  write_records(ncid, varids[3], 3);
  say_sizes(ncid);
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
