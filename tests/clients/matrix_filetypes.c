/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses by MPI filetypes: of every kind, to parts of variables, to several of them, and wrong ones. */
#include "matrix.h"

#include <string.h>

enum { kX = 7, kY = 5, kValues = 64 };
enum { kShort, kDouble, kInt, kTable, kFloat, kRow, kText, kVariables };

static int id, values[kValues], back[kValues];

/* Records of 7 shorts, which have padding behind them, and of others. */
static void make(const char *name, int format) {
  int t, x, y, var;
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path(name), NC_CLOBBER | format, MPI_INFO_NULL, &id));
  CALL(ncmpi_def_dim(id, "t", NC_UNLIMITED, &t));
  CALL(ncmpi_def_dim(id, "x", kX, &x));
  CALL(ncmpi_def_dim(id, "y", (MPI_Offset)kY * size, &y));
  const int tx[2] = {t, x}, ty[2] = {t, y}, yx[2] = {y, x};
  CALL(ncmpi_def_var(id, "short", NC_SHORT, 2, tx, &var));
  CALL(ncmpi_def_var(id, "double", NC_DOUBLE, 2, ty, &var));
  CALL(ncmpi_def_var(id, "int", NC_INT, 2, ty, &var));
  CALL(ncmpi_def_var(id, "table", NC_INT, 2, yx, &var));
  CALL(ncmpi_def_var(id, "float", NC_FLOAT, 1, &y, &var));
  CALL(ncmpi_def_var(id, "row", NC_INT, 1, &y, &var));
  CALL(ncmpi_def_var(id, "text", NC_CHAR, 1, &x, &var));
  CALL(ncmpi_enddef(id));
}

static void show_state(const char *what) {
  MPI_Offset records = -1, put = -1;
  CALL(ncmpi_inq_dimlen(id, 0, &records));
  CALL(ncmpi_inq_put_size(id, &put));
  show_number(what, records);
  show_number("put", put);
}

static int put(int varid, MPI_Datatype type, const void *data, MPI_Offset count, MPI_Datatype memory) {
  return ncmpi_put_vard_all(id, varid, type, data, count, memory);
}

static int get(int varid, MPI_Datatype type, void *data, MPI_Offset count, MPI_Datatype memory) {
  return ncmpi_get_vard_all(id, varid, type, data, count, memory);
}

/* Puts integers by a filetype, which is freed, and reads them back. */
static void put_and_get(const char *what, int varid, MPI_Datatype type, int count) {
  MPI_Type_commit(&type);
  memset(back, -1, sizeof back);
  show(what, put(varid, type, values, count, MPI_INT));
  show(what, get(varid, type, back, count, MPI_INT));
  show_ints(what, back, count);
  MPI_Type_free(&type);
  show_state(what);
}

/* Blocks of `old` at element numbers of this process's own. */
static MPI_Datatype at(int count, const int *lengths, const int *begins, MPI_Datatype old) {
  int shifted[16];
  MPI_Datatype type;
  for (int i = 0; i < count; i++) shifted[i] = begins[i] + kX * kY * rank;
  MPI_Type_indexed(count, lengths, shifted, old, &type);
  return type;
}

static void kinds(void) {
  MPI_Datatype type, inner;
  const int sizes[2] = {kY * size, kX}, parts[2] = {kY, 3}, starts[2] = {kY * rank, 2};
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
  put_and_get("subarray", kTable, type, 15);
  const int backwards[2] = {kX, kY * size}, fewer[2] = {3, kY}, later[2] = {2, kY * rank};
  MPI_Type_create_subarray(2, backwards, fewer, later, MPI_ORDER_FORTRAN, MPI_INT, &type);
  put_and_get("subarray in Fortran's order", kTable, type, 15);
  const int distributions[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, of_them[2] = {kY, 2};
  const int processes[2] = {size, 1};
  MPI_Type_create_darray(size, rank, 2, sizes, distributions, of_them, processes, MPI_ORDER_C, MPI_INT, &type);
  put_and_get("darray", kTable, type, kX * kY);
  const int lengths[3] = {2, 1, 4}, begins[3] = {1, 6, 20};
  put_and_get("indexed", kTable, at(3, lengths, begins, MPI_INT), 7);
  inner = at(3, lengths, begins, MPI_INT);
  MPI_Type_dup(inner, &type);
  put_and_get("dup", kTable, type, 7);
  MPI_Type_create_resized(inner, 0, 4096, &type);
  put_and_get("resized", kTable, type, 7);
  MPI_Type_free(&inner);
  MPI_Type_vector(3, 2, 5, MPI_INT, &inner);
  const MPI_Aint displacement = (MPI_Aint)4 * kX * kY * rank, two[2] = {displacement, displacement + 80};
  const int one = 1, ones[2] = {2, 3};
  MPI_Type_create_hindexed(1, &one, &displacement, inner, &type);
  put_and_get("vector", kTable, type, 6);
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  MPI_Type_create_struct(2, ones, two, types, &type);
  put_and_get("struct", kTable, type, 5);
  MPI_Type_create_hindexed_block(1, 1, &displacement, inner, &type);
  put_and_get("hindexed block", kTable, type, 6);
  MPI_Type_free(&inner);
  const int first = kX * kY * rank;
  MPI_Type_create_indexed_block(1, 4, &first, MPI_INT, &type);
  put_and_get("indexed block", kTable, type, 4);
}

/* Where this process's part of a record variable lies in `count` records, from `first` on. */
static MPI_Datatype in_records(int first, int count, MPI_Datatype element) {
  MPI_Offset bytes = 0;
  int size_of_element = 0;
  MPI_Datatype inner, type;
  MPI_Type_size(element, &size_of_element);
  CALL(ncmpi_inq_recsize(id, &bytes));
  MPI_Type_create_hvector(count, kY, (MPI_Aint)bytes, element, &inner);
  const MPI_Aint begin = (MPI_Aint)(first * bytes + (MPI_Offset)size_of_element * kY * rank);
  const int one = 1;
  MPI_Type_create_hindexed(1, &one, &begin, inner, &type);
  MPI_Type_free(&inner);
  return type;
}

static void records_by_type(void) {
  MPI_Datatype type;
  put_and_get("records", kInt, in_records(1, 3, MPI_INT), 3 * kY);
  put_and_get("doubles from integers", kDouble, in_records(0, 2, MPI_DOUBLE), 2 * kY);
  type = in_records(rank == 0 ? 6 : 2, 1, MPI_INT);
  MPI_Type_commit(&type);
  show("as many as the filetype spans", put(kInt, type, values, 0, MPI_INT));
  show_state("records");
  MPI_Type_free(&type);
  type = in_records(8, 1, MPI_INT);
  MPI_Type_commit(&type);
  show("also when it fails", put(kInt, type, values, 3, MPI_INT));
  show_state("records");
  MPI_Type_free(&type);
}

static void memory(void) {
  const int sizes[2] = {kY * size, kX}, parts[2] = {kY, 2}, starts[2] = {kY * rank, 3};
  double doubles[kValues];
  MPI_Datatype type, spread;
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Type_vector(10, 1, 3, MPI_DOUBLE, &spread);
  MPI_Type_commit(&spread);
  for (int i = 0; i < kValues; i++) doubles[i] = i * 1.5 - 8;
  CALL(put(kTable, type, doubles, 1, spread));
  CALL(get(kTable, type, back, 99, MPI_DATATYPE_NULL));
  show_ints("table", back, 10);
  doubles[3] = 1e20;
  CALL(put(kTable, type, doubles, 1, spread));
  memset(doubles, 0, sizeof doubles);
  CALL(get(kTable, type, doubles, 1, spread));
  show_doubles("table", doubles, 30);
  CALL(put(kTable, type, values, 0, MPI_INT));
  CALL(put(kTable, type, values, 9, MPI_INT));
  CALL(put(kTable, type, values, 10, MPI_CHAR));
  CALL(put(kTable, type, values, 10, MPI_BYTE));
  CALL(put(kTable, type, values, 0, MPI_DATATYPE_NULL));
  CALL(get(kTable, type, back, 10, MPI_INT));
  show_ints("table", back, 10);
  CALL(put(kFloat, type, values, 10, MPI_INT));
  CALL(put(kTable, MPI_DATATYPE_NULL, values, 10, MPI_INT));
  CALL(put(kTable, MPI_BYTE, values, 1, MPI_INT));
  CALL(put(kTable, MPI_LONG_DOUBLE, values, 1, MPI_INT));
  CALL(put(NC_GLOBAL, type, values, 10, MPI_INT));
  CALL(put(kVariables, type, values, 10, MPI_INT));
  CALL(ncmpi_put_vard(id, kTable, type, values, 10, MPI_INT));
  show_state("wrong ones");
  MPI_Type_free(&spread);
  MPI_Type_free(&type);
}

static void several_types(void) {
  const int ones[2] = {1, 1};
  const MPI_Aint begins[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_INT, MPI_FLOAT};
  MPI_Datatype type;
  MPI_Type_create_struct(2, ones, begins, types, &type);
  MPI_Type_commit(&type);
  CALL(put(kTable, type, values, 2, MPI_INT));
  MPI_Type_free(&type);
}

/* From the end of this process's part of one variable into another one. */
static void several_variables(void) {
  MPI_Offset begin = 0, other = 0;
  CALL(ncmpi_inq_varoffset(id, kTable, &begin));
  CALL(ncmpi_inq_varoffset(id, kRow, &other));
  const int lengths[2] = {3, kY};
  const MPI_Aint begins[2] = {(MPI_Aint)4 * kX * kY * rank, (MPI_Aint)(other - begin + (MPI_Offset)4 * kY * rank)};
  MPI_Datatype type;
  MPI_Type_create_hindexed(2, lengths, begins, MPI_INT, &type);
  put_and_get("two variables", kTable, type, 3 + kY);
  CALL(ncmpi_get_var_int_all(id, kRow, back));
  show_ints("row", back, kY * size);
}

static void alone(void) {
  MPI_Datatype type = in_records(rank, 1, MPI_INT);
  MPI_Type_commit(&type);
  CALL(ncmpi_begin_indep_data(id));
  CALL(put(kInt, type, values, kY, MPI_INT));
  CALL(ncmpi_put_vard(id, kInt, type, values, kY, MPI_INT));
  memset(back, 0, sizeof back);
  CALL(ncmpi_get_vard(id, kInt, type, back, kY, MPI_INT));
  show_ints("alone", back, kY);
  CALL(ncmpi_put_vard(id, kInt, type, values, 0, MPI_INT));
  CALL(ncmpi_put_vard(id, kInt, type, values, 1, MPI_INT));
  CALL(ncmpi_put_vard(id, kFloat, type, values, kY, MPI_INT));
  CALL(ncmpi_end_indep_data(id));
  show_state("alone");
  MPI_Type_free(&type);
}

/* Halves of elements, and what lies between variables. */
static void no_elements(void) {
  const int lengths[2] = {2, 2};
  const MPI_Aint begins[2] = {(MPI_Aint)4 * kX * kY * rank + 2, (MPI_Aint)4 * kX * kY * rank + 22};
  MPI_Datatype type;
  MPI_Type_create_hindexed(2, lengths, begins, MPI_INT, &type);
  MPI_Type_commit(&type);
  CALL(ncmpi_begin_indep_data(id));
  CALL(ncmpi_put_vard(id, kTable, type, values, 4, MPI_INT));
  memset(back, 0, sizeof back);
  CALL(ncmpi_get_vard(id, kTable, type, back, 4, MPI_INT));
  show_ints("halves", back, 4);
  CALL(ncmpi_end_indep_data(id));
  MPI_Type_free(&type);
  MPI_Type_create_hindexed(2, lengths, begins, MPI_INT, &type);
  put_and_get("halves", kTable, type, 4);
  CALL(ncmpi_get_var_int_all(id, kRow, back));
  show_ints("row", back, kY * size);
}

static void open_to_read(void) {
  MPI_Datatype type = in_records(1, 2, MPI_INT);
  MPI_Type_commit(&type);
  CALL(put(kInt, type, values, 2 * kY, MPI_INT));
  CALL(get(kInt, type, back, 2 * kY, MPI_INT));
  show_ints("again", back, 2 * kY);
  MPI_Type_free(&type);
}

void filetypes(int format) {
  char name[32];
  snprintf(name, sizeof name, "filetypes%d", format);
  for (int i = 0; i < kValues; i++) values[i] = 1000 * rank + i + 1;
  make(name, format);
  CALL(ncmpi_fill_var_rec(id, kInt, 0));
  kinds();
  memory();
  several_types();
  several_variables();
  records_by_type();
  alone();
  no_elements();
  CALL(ncmpi_close(id));
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path(name), NC_NOWRITE, MPI_INFO_NULL, &id));
  open_to_read();
  CALL(ncmpi_close(id));
}
