/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking puts and gets: shapes, types, bounds, records, modes. */
#include "matrix.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void show_sizes(int id) {
  MPI_Offset put = -1, get = -1;
  CALL(ncmpi_inq_put_size(id, &put));
  CALL(ncmpi_inq_get_size(id, &get));
  (void)put, (void)get;
}

/* A file with x[8*size], v[4][8*size], s, r[t][8*size], of several types. */
static int make(const char *kind, int format, int *x, int *v, int *s, int *r, int *b) {
  int id = -1, t, d4, dx, dims[3];
  char name[64];
  snprintf(name, sizeof name, "%s%d", kind, format);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), format, MPI_INFO_NULL, &id));
  ncmpi_def_dim(id, "t", NC_UNLIMITED, &t);
  ncmpi_def_dim(id, "four", 4, &d4);
  ncmpi_def_dim(id, "x", 8 * size, &dx);
  ncmpi_def_var(id, "x", NC_INT, 1, &dx, x);
  dims[0] = d4, dims[1] = dx;
  ncmpi_def_var(id, "v", NC_DOUBLE, 2, dims, v);
  ncmpi_def_var(id, "s", NC_FLOAT, 0, NULL, s);
  dims[0] = t;
  ncmpi_def_var(id, "r", NC_SHORT, 2, dims, r);
  ncmpi_def_var(id, "b", NC_BYTE, 2, dims, b);
  CALL(ncmpi_set_fill(id, NC_FILL, NULL));
  return id;
}

void data(int format) {
  int x, v, s, r, b, id = make("data", format, &x, &v, &s, &r, &b);
  double block[4][8], all[4 * 8 * 64];
  int ints[64];
  float f = 2.5f;
  MPI_Offset start[3] = {0, 8 * rank}, count[3] = {4, 8}, stride[3] = {2, 3}, imap[3] = {1, 4};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 8; ++j) block[i][j] = 100 * rank + 10 * i + j + 0.25;
  for (int i = 0; i < 64; ++i) ints[i] = 1000 * rank + i;
  CALL(ncmpi_put_vara_double_all(id, v, start, count, &block[0][0]));
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_put_vara_double_all(id, v, start, count, &block[0][0]));
  CALL(ncmpi_get_vara_double_all(id, v, start, count, all)), show_doubles("block", all, 32);
  CALL(ncmpi_get_var_double_all(id, v, all)), show_doubles("all", all, 32 * size);
  CALL(ncmpi_put_var_float_all(id, s, &f));
  CALL(ncmpi_get_var_double_all(id, s, all)), show_doubles("s", all, 1);
  CALL(ncmpi_put_var1_double_all(id, v, start, &block[3][7]));
  count[0] = 2, count[1] = 2;
  CALL(ncmpi_put_vars_int_all(id, v, start, count, stride, ints));
  CALL(ncmpi_put_varm_int_all(id, v, start, count, stride, imap, ints));
  CALL(ncmpi_get_varm_double_all(id, v, start, count, stride, imap, all)), show_doubles("mapped", all, 8);
  CALL(ncmpi_get_vars_double_all(id, v, start, count, stride, all)), show_doubles("strided", all, 4);
  CALL(ncmpi_get_var_double_all(id, v, all)), show_doubles("all", all, 32 * size);
  start[0] = 8 * rank, count[0] = rank == 0 ? 0 : 8;
  CALL(ncmpi_put_vara_int_all(id, x, start, count, ints));
  CALL(ncmpi_get_var_int_all(id, x, ints)), show_ints("x", ints, 8 * size);
  CALL(ncmpi_put_vara_text_all(id, x, start, count, "12345678"));
  CALL(ncmpi_put_vara_int_all(id, 99, start, count, ints));
  CALL(ncmpi_put_vara_int_all(id, NC_GLOBAL, start, count, ints));
  CALL(ncmpi_put_vara_int(id, x, start, count, ints));
  show_sizes(id);
  CALL(ncmpi_sync(id));
  CALL(ncmpi_close(id));
}

void bounds(int format) {
  int x, v, s, r, b, id = make("bounds", format, &x, &v, &s, &r, &b);
  int ints[256] = {0};
  const MPI_Offset end = 8 * size;
  CALL(ncmpi_enddef(id));
  static const MPI_Offset cases[][6] = {
      /* start, count and stride of x; -100 + n: the end plus n */
      {-1, 1, 1}, {0, -1, 1}, {0, -100, 1}, {0, -99, 1}, {-100, 1, 1}, {-100, 0, 1}, {-99, 0, 1}, {-101, 2, 1},
      {0, 2, 0},  {0, 2, -1}, {0, 4, 2},    {0, 5, 2},   {1, 4, 2},    {0, 1, 1000}, {7, 1, 1},   {7, 2, 8}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    MPI_Offset start[1] = {cases[i][0] < -50 ? end + cases[i][0] + 100 : cases[i][0]};
    MPI_Offset count[1] = {cases[i][1] < -50 ? end + cases[i][1] + 100 : cases[i][1]};
    MPI_Offset stride[1] = {cases[i][2]};
    if (count[0] > 200) count[0] = 200;
    fprintf(out, "case %zu\n", i);
    CALL(ncmpi_put_vars_int_all(id, x, start, count, stride, ints));
    CALL(ncmpi_get_vars_int_all(id, x, start, count, stride, ints));
    CALL(ncmpi_put_vara_int_all(id, x, start, count, ints));
    CALL(ncmpi_get_var1_int_all(id, x, start, ints));
    CALL(ncmpi_put_vars_int_all(id, x, start, count, NULL, ints));
    CALL(ncmpi_put_varm_int_all(id, x, start, count, stride, NULL, ints));
  }
  MPI_Offset zero[2] = {0, 0}, one[2] = {1, 1}, far[2] = {3, 0};
  CALL(ncmpi_put_vara_int_all(id, x, NULL, one, ints));
  CALL(ncmpi_put_vara_int_all(id, x, zero, NULL, ints));
  CALL(ncmpi_put_vars_int_all(id, x, zero, NULL, NULL, ints));
  CALL(ncmpi_put_var1_int_all(id, x, NULL, ints));
  CALL(ncmpi_put_var1_int_all(id, s, NULL, ints));
  CALL(ncmpi_put_vara_int_all(id, s, NULL, NULL, ints));
  CALL(ncmpi_get_vara_int_all(id, r, zero, one, ints));
  CALL(ncmpi_get_vara_int_all(id, r, zero, zero, ints));
  CALL(ncmpi_put_vara_int_all(id, r, far, zero, ints));
  MPI_Offset length = -1;
  CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
  CALL(ncmpi_get_vara_int_all(id, r, far, zero, ints));
  CALL(ncmpi_get_vara_int_all(id, r, far, one, ints));
  CALL(ncmpi_put_varn_int_all(id, x, 1, NULL, NULL, ints));
  CALL(ncmpi_put_varn_int_all(id, s, 2, NULL, NULL, ints));
  CALL(ncmpi_put_varn_int_all(id, s, 1, NULL, NULL, ints));
  CALL(ncmpi_put_varn_int_all(id, x, 0, NULL, NULL, ints));
  MPI_Offset *starts[3] = {zero, NULL, one}, *counts[3] = {one, NULL, one};
  CALL(ncmpi_put_varn_int_all(id, x, 3, starts, counts, ints));
  starts[1] = one;
  CALL(ncmpi_put_varn_int_all(id, x, 3, starts, counts, ints));
  CALL(ncmpi_get_varn_int_all(id, x, 2, starts, NULL, ints));
  starts[1] = (MPI_Offset[]){end};
  CALL(ncmpi_put_varn_int_all(id, x, 3, starts, counts, ints));
  /* One rank is wrong; the others go on. */
  MPI_Offset start[1] = {rank == size - 1 ? end + 5 : 8 * rank}, count[1] = {8};
  CALL(ncmpi_put_vara_int_all(id, x, start, count, ints));
  CALL(ncmpi_put_vara_int_all(id, rank == size - 1 ? 99 : x, (MPI_Offset[]){8 * rank}, count, ints));
  CALL(ncmpi_get_vara_int_all(id, x, start, count, ints));
  CALL(ncmpi_close(id));
}

#define EXTREMES(type, low, high) \
  static const type type##_values[8] = {(type)(low), (type)(high), 0, 1, (type)-1, (type)100, (type)200, (type)40000};
typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort_;
typedef unsigned int uint_;
typedef long long longlong;
typedef unsigned long long ulonglong;
EXTREMES(schar, SCHAR_MIN, SCHAR_MAX)
EXTREMES(uchar, 0, UCHAR_MAX)
EXTREMES(short, SHRT_MIN, SHRT_MAX)
EXTREMES(ushort_, 0, USHRT_MAX)
EXTREMES(int, INT_MIN, INT_MAX)
EXTREMES(uint_, 0, UINT_MAX)
EXTREMES(long, LONG_MIN, LONG_MAX)
EXTREMES(longlong, LLONG_MIN, LLONG_MAX)
EXTREMES(ulonglong, 0, ULLONG_MAX)

/* A variable of more dimensions than netCDF allows: PnetCDF knows no limit. */
void many_dimensions(int format) {
  enum { kDims = 1500 };
  int id = -1, v = -1, dims[kDims], got[4] = {0};
  MPI_Offset start[kDims] = {0}, count[kDims];
  char name[64];
  snprintf(name, sizeof name, "dimensions%d", format);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), format, MPI_INFO_NULL, &id));
  CALL(ncmpi_def_dim(id, "one", 1, &dims[0]));
  CALL(ncmpi_def_dim(id, "x", 4 * size, &dims[kDims - 1]));
  for (int d = 1; d < kDims - 1; ++d) dims[d] = dims[0];
  for (int d = 0; d < kDims; ++d) count[d] = 1;
  CALL(ncmpi_def_var(id, "v", NC_INT, kDims, dims, &v));
  CALL(ncmpi_enddef(id));
  start[kDims - 1] = 4 * rank, count[kDims - 1] = 4;
  const int values[4] = {rank, 1, 2, 3};
  CALL(ncmpi_put_vara_int_all(id, v, start, count, values));
  CALL(ncmpi_get_vara_int_all(id, v, start, count, got));
  show_ints("read", got, 4);
  CALL(ncmpi_close(id));
}

static void show_bytes(const void *bytes, size_t length) {
  fprintf(out, "  bytes");
  for (size_t i = 0; i < length; ++i) fprintf(out, " %02x", ((const unsigned char *)bytes)[i]);
  fprintf(out, "\n");
}

/* clang-format off */
#define ALL_MEMORY_TYPES(X)                                                                                     \
  X(schar, schar, schar_values) X(uchar, uchar, uchar_values) X(short, short, short_values)                     \
  X(ushort, ushort_, ushort__values) X(int, int, int_values) X(uint, uint_, uint__values) X(long, long, long_values) \
  X(float, float, float_values) X(double, double, double_values) X(longlong, longlong, longlong_values)         \
  X(ulonglong, ulonglong, ulonglong_values)
/* clang-format on */

void types(int format) {
  static const float float_values[8] = {-FLT_MAX, FLT_MAX, 0.5f, -1.75f, 127.4f, 40000.9f, 3e9f, 1e19f};
  static const double double_values[8] = {-DBL_MAX, 2147483647.5, 1e-300, -128.9, 255.99, 65535.2, 4294967296.0, 1e18};
  static const nc_type types[] = {NC_BYTE,  NC_CHAR,   NC_SHORT, NC_INT,   NC_FLOAT, NC_DOUBLE,
                                  NC_UBYTE, NC_USHORT, NC_UINT,  NC_INT64, NC_UINT64};
  const int count_of_types = format == NC_64BIT_DATA ? 11 : 6;
  int id = -1, dims[2], vars[11];
  char name[64];
  snprintf(name, sizeof name, "types%d", format);
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), format, MPI_INFO_NULL, &id));
  ncmpi_def_dim(id, "memory", 12, &dims[0]);
  ncmpi_def_dim(id, "n", 8, &dims[1]);
  for (int i = 0; i < count_of_types; ++i) {
    snprintf(name, sizeof name, "v%d", types[i]);
    ncmpi_def_var(id, name, types[i], 2, dims, &vars[i]);
  }
  static const int seven = 7;
  CALL(ncmpi_put_att_int(id, vars[2], "_FillValue", NC_SHORT, 1, &seven));
  CALL(ncmpi_enddef(id));
  for (int i = 0; i < count_of_types; ++i) {
    MPI_Offset start[2] = {0, 0}, count[2] = {1, rank == 0 ? 8 : 0};
    fprintf(out, "type %d\n", types[i]);
#define PUT_AND_GET(suffix, type, values)                                   \
  {                                                                         \
    type back[8];                                                           \
    memset(back, 0x55, sizeof back);                                        \
    CALL(ncmpi_put_vara_##suffix##_all(id, vars[i], start, count, values)); \
    CALL(ncmpi_get_vara_##suffix##_all(id, vars[i], start, count, back));   \
    show_bytes(back, sizeof back);                                          \
    start[0] = 0;                                                           \
    CALL(ncmpi_get_vara_##suffix##_all(id, vars[i], start, count, back));   \
    show_bytes(back, sizeof back);                                          \
    start[0] = ++next;                                                      \
  }
    MPI_Offset next = 0;
    ALL_MEMORY_TYPES(PUT_AND_GET)
    char text[9] = "abcdefgh";
    CALL(ncmpi_put_vara_text_all(id, vars[i], start, count, text));
    CALL(ncmpi_get_vara_text_all(id, vars[i], start, count, text)), fprintf(out, "  %s\n", text);
  }
  CALL(ncmpi_close(id));
}

void records(int format) {
  int x, v, s, r, b, id = make("records", format, &x, &v, &s, &r, &b);
  int ints[512];
  MPI_Offset length = -1, start[2], count[2] = {1, 8}, stride[2] = {2, 1};
  for (int i = 0; i < 512; ++i) ints[i] = 10 * rank + i % 100;
  CALL(ncmpi_enddef(id));
  for (int step = 0; step < 3; ++step) {
    start[0] = step, start[1] = 8 * rank;
    CALL(ncmpi_put_vara_int_all(id, r, start, count, ints + step));
    CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
    CALL(ncmpi_put_vara_int_all(id, b, start, count, ints + step));
  }
  start[0] = rank == size - 1 ? 5 : 3;
  CALL(ncmpi_put_vara_int_all(id, r, start, count, ints));
  CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
  start[0] = 6, count[0] = 2;
  CALL(ncmpi_put_vars_int_all(id, r, start, count, stride, ints));
  CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
  start[0] = rank == 0 ? -1 : 12; /* root is wrong; natively the others would wait for it for ever */
  if (size == 1) CALL(ncmpi_put_vara_int_all(id, r, start, count, ints));
  for (int step = 0; step < 3; ++step) {
    start[0] = step, count[0] = 1;
    CALL(ncmpi_get_vara_int_all(id, r, start, count, ints)), show_ints("record", ints, 8);
  }
  start[0] = 1, count[0] = 1;
  CALL(ncmpi_fill_var_rec(id, r, 1));
  CALL(ncmpi_get_vara_int_all(id, r, start, count, ints)), show_ints("filled", ints, 8);
  CALL(ncmpi_fill_var_rec(id, b, 20));
  CALL(ncmpi_fill_var_rec(id, r, 20));
  CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
  CALL(ncmpi_sync_numrecs(id));
  CALL(ncmpi_close(id));
}

void again(int format) {
  int x, v, s, r, b, id = make("again", format, &x, &v, &s, &r, &b), d, added, ints[512];
  double all[2048];
  MPI_Offset start[2] = {0, 8 * rank}, count[2] = {2, 8}, length = -1;
  for (int i = 0; i < 512; ++i) ints[i] = 7 * rank + i;
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_put_vara_int_all(id, v, start, count, ints));
  CALL(ncmpi_put_vara_int_all(id, r, start, count, ints));
  CALL(ncmpi_redef(id));
  CALL(ncmpi_def_dim(id, "new", 3, &d));
  CALL(ncmpi_def_var(id, "added", NC_INT, 1, &d, &added));
  CALL(ncmpi_put_att_text(
      id, NC_GLOBAL, "history", 400,
      "........................................................................................................"
      "........................................................................................................"
      "........................................................................................................"
      "........................................................................................................"));
  CALL(ncmpi_get_vara_int_all(id, r, start, count, ints));
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_get_var_int_all(id, added, ints)), show_ints("added", ints, 3);
  CALL(ncmpi_get_vara_double_all(id, v, start, count, all)), show_doubles("v", all, 16);
  CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
  CALL(ncmpi_get_var_int_all(id, r, ints)), show_ints("r", ints, 16 * size);
  CALL(ncmpi_close(id));
  char name[64];
  snprintf(name, sizeof name, "again%d", format);
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path(name), NC_WRITE, MPI_INFO_NULL, &id));
  CALL(ncmpi_get_vara_double_all(id, v, start, count, all)), show_doubles("v", all, 16);
  start[0] = 2;
  CALL(ncmpi_put_vara_int_all(id, r, start, count, ints));
  CALL(ncmpi_put_att_text(id, NC_GLOBAL, "history", 3, "new"));
  CALL(ncmpi_get_var_int_all(id, r, ints)), show_ints("r", ints, 32 * size);
  CALL(ncmpi_close(id));
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path(name), NC_NOWRITE, MPI_INFO_NULL, &id));
  CALL(ncmpi_put_vara_int_all(id, r, start, count, ints));
  CALL(ncmpi_get_var_int_all(id, r, ints)), show_ints("r", ints, 32 * size);
  CALL(ncmpi_inq_get_size(id, &length));
  CALL(ncmpi_close(id));
}

void independent(int format) {
  int x, v, s, r, b, id = make("independent", format, &x, &v, &s, &r, &b), ints[512];
  MPI_Offset start[2] = {rank, 0}, count[2] = {1, 8 * size}, length = -1;
  for (int i = 0; i < 512; ++i) ints[i] = 3 * rank + i;
  CALL(ncmpi_begin_indep_data(id));
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_end_indep_data(id));
  CALL(ncmpi_begin_indep_data(id));
  CALL(ncmpi_begin_indep_data(id));
  CALL(ncmpi_put_vara_int(id, r, start, count, ints));
  CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
  CALL(ncmpi_put_vara_int_all(id, r, start, count, ints));
  count[0] = 0;
  CALL(ncmpi_put_vara_int(id, r, (MPI_Offset[]){50, 0}, count, ints));
  count[0] = 1;
  CALL(ncmpi_put_vara_int(id, r, (MPI_Offset[]){-50, 0}, count, ints));
  if (rank == 0) CALL(ncmpi_put_var_int(id, x, ints));
  CALL(ncmpi_get_vara_int(id, r, start, count, ints)), show_ints("own record", ints, 8);
  CALL(ncmpi_put_att_text(id, NC_GLOBAL, "a", 1, "b"));
  CALL(ncmpi_sync_numrecs(id));
  CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
  CALL(ncmpi_sync(id));
  CALL(ncmpi_end_indep_data(id));
  CALL(ncmpi_end_indep_data(id));
  CALL(ncmpi_get_var_int_all(id, r, ints)), show_ints("r", ints, size < 8 ? 8 * size * size : 8);
  CALL(ncmpi_get_var_int_all(id, x, ints)), show_ints("x", ints, 8 * size);
  CALL(ncmpi_begin_indep_data(id));
  CALL(ncmpi_put_vara_int(id, r, (MPI_Offset[]){size + rank, 0}, count, ints));
  CALL(ncmpi_redef(id));
  CALL(ncmpi_inq_dimlen(id, 0, &length)), show_number("records", length);
  CALL(ncmpi_enddef(id));
  CALL(ncmpi_begin_indep_data(id));
  CALL(ncmpi_put_vara_int(id, r, (MPI_Offset[]){2 * size + rank, 0}, count, ints));
  CALL(ncmpi_close(id));
}
