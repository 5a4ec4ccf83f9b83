/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of one call that meet: what several of them write, or read, counts once. What the gets read is not shown:
 * natively, of two that meet only one gets its data. */
#include "matrix.h"

#include <string.h>

enum { kSide = 20 };

/* Where requests meet they write the same values: which of them wins is not defined. */
static int values[kSide * kSide];

static int id;

static void show_sizes(const char *what) {
  static MPI_Offset last_put, last_get;
  MPI_Offset put = 0, get = 0;
  show(what, ncmpi_inq_put_size(id, &put));
  CALL(ncmpi_inq_get_size(id, &get));
  show_number("written", put - last_put), show_number("read", get - last_get);
  last_put = put, last_get = get;
}

typedef struct {
  MPI_Offset start[2], count[2], stride[2];
} Selection;

static void finish(const char *what, int independent) {
  if (independent)
    CALL(ncmpi_wait(id, NC_REQ_ALL, NULL, NULL));
  else
    CALL(ncmpi_wait_all(id, NC_REQ_ALL, NULL, NULL));
  show_sizes(what);
}

static void put_and_get(const char *what, const int *varids, const Selection *selections, int count, int independent) {
  static int read[8][kSide * kSide];
  for (int i = 0; i < count; ++i)
    CALL(ncmpi_iput_vars_int(id, varids[i], selections[i].start, selections[i].count, selections[i].stride, values,
                             NULL));
  finish(what, independent);
  for (int i = 0; i < count; ++i)
    CALL(ncmpi_iget_vars_int(id, varids[i], selections[i].start, selections[i].count, selections[i].stride, read[i],
                             NULL));
  finish(what, independent);
}

static void varn(int varid, const Selection *selections, int count) {
  MPI_Offset starts[8][2], counts[8][2], *start[8], *length[8];
  static int packed[8 * kSide * kSide];
  for (int i = 0; i < count; ++i) {
    memcpy(starts[i], selections[i].start, sizeof starts[i]);
    memcpy(counts[i], selections[i].count, sizeof counts[i]);
    start[i] = starts[i], length[i] = counts[i];
  }
  CALL(ncmpi_put_varn_int_all(id, varid, count, start, length, packed));
  show_sizes("put_varn");
  CALL(ncmpi_get_varn_int_all(id, varid, count, start, length, packed));
  show_sizes("get_varn");
}

void overlaps(int format) {
  static const Selection upper = {{0, 0}, {10, kSide}, {1, 1}}, middle = {{5, 0}, {10, kSide}, {1, 1}},
                         columns = {{0, 5}, {kSide, 3}, {1, 1}}, dots = {{0, 0}, {5, 5}, {2, 2}},
                         other_dots = {{1, 1}, {5, 5}, {2, 2}}, records = {{1, 0}, {2, kSide}, {1, 1}},
                         later_records = {{2, 5}, {2, 10}, {1, 1}};
  int dims[3], a, b, r;
  for (int i = 0; i < kSide * kSide; ++i) values[i] = 7;
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path("overlaps"), NC_CLOBBER | format, MPI_INFO_NULL, &id));
  CALL(ncmpi_def_dim(id, "t", NC_UNLIMITED, &dims[2]));
  CALL(ncmpi_def_dim(id, "y", kSide, &dims[0]));
  CALL(ncmpi_def_dim(id, "x", kSide, &dims[1]));
  CALL(ncmpi_def_var(id, "a", NC_INT, 2, dims, &a));
  CALL(ncmpi_def_var(id, "b", NC_INT, 2, dims, &b));
  dims[0] = dims[2];
  CALL(ncmpi_def_var(id, "r", NC_SHORT, 2, dims, &r));
  CALL(ncmpi_set_fill(id, NC_FILL, NULL));
  CALL(ncmpi_enddef(id));
  for (int record = 0; record < 4; ++record) CALL(ncmpi_fill_var_rec(id, r, record));
  show_sizes("new");
  put_and_get("the same twice", (int[]){a, a}, (Selection[]){upper, upper}, 2, 0);
  put_and_get("two halves", (int[]){a, a}, (Selection[]){upper, middle}, 2, 0);
  put_and_get("two variables", (int[]){a, b, a}, (Selection[]){upper, upper, middle}, 3, 0);
  put_and_get("crossing", (int[]){b, b, a}, (Selection[]){upper, columns, columns}, 3, 0);
  put_and_get("dots and columns", (int[]){a, a}, (Selection[]){dots, columns}, 2, 0);
  put_and_get("dots between dots", (int[]){a, a}, (Selection[]){dots, other_dots}, 2, 0);
  put_and_get("records", (int[]){r, r, a}, (Selection[]){records, later_records, upper}, 3, 0);
  varn(a, (Selection[]){upper, middle, columns}, 3);
  CALL(ncmpi_begin_indep_data(id));
  put_and_get("independent", (int[]){a, a}, (Selection[]){upper, middle}, 2, 1);
  CALL(ncmpi_end_indep_data(id));
  CALL(ncmpi_close(id));
}
