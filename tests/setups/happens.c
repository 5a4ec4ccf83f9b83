/* SPDX-License-Identifier: BSD-3-Clause */
/* One program of several for a file. Arguments:
 * create FILE MIB      makes it, without reading back: each time the same
 * half FILE NUMBER     writes every other row of it, from row 0 or 1 on, and some of a record
 * sum FILE             reads it
 * moved WAY PLACE      its file is renamed, removed or replaced while it is open, or when it has been closed
 * small N KIND         each process puts N elements, one by one: `put`, `iput`, `records`; says how much memory it took
 */
#include "pauses.h"

enum { kRow = 4096 };

static int define(const char *path, MPI_Offset rows, int *ncid) {
  int dims[2], t, var, record;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, ncid));
  CHECK(ncmpi_def_dim(*ncid, "t", NC_UNLIMITED, &t));
  CHECK(ncmpi_def_dim(*ncid, "row", rows, &dims[0]));
  CHECK(ncmpi_def_dim(*ncid, "x", kRow, &dims[1]));
  CHECK(ncmpi_def_var(*ncid, "rows", NC_INT, 2, dims, &var));
  CHECK(ncmpi_def_var(*ncid, "records", NC_INT, 2, (int[]){t, dims[1]}, &record));
  CHECK(ncmpi_enddef(*ncid));
  return var;
}

static void put_row(int ncid, int var, MPI_Offset row, int factor) {
  int data[kRow];
  const MPI_Offset start[2] = {row, 0}, count[2] = {1, kRow};
  for (int i = 0; i < kRow; i++) data[i] = factor * ((int)row * 1000 + i % 1000);
  CHECK(ncmpi_put_vara_int(ncid, var, start, count, data));
}

static void create(const char *path, int mib) {
  int ncid;
  const MPI_Offset rows = mib * 64;
  const int var = define(path, rows, &ncid);
  CHECK(ncmpi_begin_indep_data(ncid));
  for (MPI_Offset row = rank; row < rows; row += size) put_row(ncid, var, row, 1);
  for (MPI_Offset record = rank; record < 8; record += size) put_row(ncid, var + 1, record, 2);
  CHECK(ncmpi_end_indep_data(ncid));
  CHECK(ncmpi_close(ncid));
}

static void half(const char *path, int number) {
  int ncid;
  MPI_Offset rows;
  CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_inq_dimlen(ncid, 1, &rows));
  CHECK(ncmpi_begin_indep_data(ncid));
  for (MPI_Offset row = number + 2 * rank; row < rows; row += 2 * size) put_row(ncid, 0, row, 3);
  for (MPI_Offset record = number + 2 * rank; record < 8; record += 2 * size) put_row(ncid, 1, record, 4);
  CHECK(ncmpi_end_indep_data(ncid));
  CHECK(ncmpi_close(ncid));
}

static void sum_of(int ncid, const char *path) {
  static int data[kRow];
  MPI_Offset rows, records;
  unsigned long long sum = 0;
  CHECK(ncmpi_inq_dimlen(ncid, 1, &rows));
  CHECK(ncmpi_inq_dimlen(ncid, 0, &records));
  for (MPI_Offset row = 0; row < rows + records; row++) {
    const MPI_Offset start[2] = {row < rows ? row : row - rows, 0}, count[2] = {1, kRow};
    CHECK(ncmpi_get_vara_int_all(ncid, row >= rows, start, count, data));
    for (int i = 0; i < kRow; i++) sum = sum * 31 + (unsigned)data[i];
  }
  SAY("%s: %lld rows, %lld records, %llx\n", path, (long long)rows, (long long)records, sum);
}

static void sum(const char *path) {
  int ncid;
  CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
  sum_of(ncid, path);
  CHECK(ncmpi_close(ncid));
}

static void move(const char *way) {
  if (rank == 0 && strcmp(way, "renamed") == 0) rename("out.nc", "elsewhere.nc");
  if (rank == 0 && strcmp(way, "removed") == 0) remove("out.nc");
  if (rank == 0 && strcmp(way, "replaced") == 0) {
    FILE *other = fopen("other", "w");
    fputs("of somebody else\n", other);
    fclose(other);
    rename("other", "out.nc");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void moved(const char *way, const char *place) {
  int ncid;
  const int var = define("out.nc", 64, &ncid);
  CHECK(ncmpi_begin_indep_data(ncid));
  for (MPI_Offset row = rank; row < 40; row += size) put_row(ncid, var, row, 5);
  put_row(ncid, var + 1, 2 * rank, 5);
  CHECK(ncmpi_end_indep_data(ncid));
  if (strcmp(place, "closed") != 0) move(way);
  pause_at("killed", place);
  CHECK(ncmpi_begin_indep_data(ncid));
  put_row(ncid, var, 50 + rank, 6);
  CHECK(ncmpi_end_indep_data(ncid));
  sum_of(ncid, way);
  CHECK(ncmpi_close(ncid));
  if (strcmp(place, "closed") == 0) move(way);
}

static long most_memory_kib(void) {
  char line[256];
  long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) (void)sscanf(line, "VmHWM: %ld", &kib);
  if (status != NULL) fclose(status);
  return kib;
}

/* In steps of a large prime, so that what is put next lies elsewhere. */
static void small(int n, const char *kind) {
  enum { kAtOnce = 1000, kStep = 7919 };
  const int is_record = strcmp(kind, "records") == 0;
  int ncid, dims[2], var, ids[kAtOnce], pending = 0;
  static double values[kAtOnce];
  CHECK(ncmpi_create(MPI_COMM_WORLD, "small.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", (MPI_Offset)(is_record ? 1 : n) * size, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "v", NC_DOUBLE, is_record ? 2 : 1, is_record ? dims : dims + 1, &var));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_begin_indep_data(ncid));
  const double begun = MPI_Wtime();
  for (int i = 0; i < n; i++) {
    const MPI_Offset element = (MPI_Offset)i * kStep % n, at[2] = {is_record ? i : element * size + rank, rank};
    double *value = &values[i % kAtOnce];
    *value = rank + (double)at[0];
    if (strcmp(kind, "iput") != 0) {
      CHECK(ncmpi_put_var1_double(ncid, var, at, value));
      continue;
    }
    CHECK(ncmpi_iput_var1_double(ncid, var, at, value, &ids[pending++]));
    if (pending == kAtOnce || i + 1 == n) {
      CHECK(ncmpi_wait(ncid, pending, ids, NULL));
      pending = 0;
    }
  }
  CHECK(ncmpi_end_indep_data(ncid));
  const double put_s = MPI_Wtime() - begun;
  CHECK(ncmpi_close(ncid));
  if (rank == 0)
    fprintf(stderr, "put %.3f s, closed %.3f s, memory %ld KiB\n", put_s, MPI_Wtime() - begun, most_memory_kib());
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  const char *what = argc > 1 ? argv[1] : "", *first = argc > 2 ? argv[2] : "out.nc", *second = argc > 3 ? argv[3] : "";
  if (strcmp(what, "create") == 0) create(first, atoi(second));
  if (strcmp(what, "half") == 0) half(first, atoi(second));
  if (strcmp(what, "sum") == 0) sum(first);
  if (strcmp(what, "moved") == 0) moved(first, second);
  if (strcmp(what, "small") == 0) small(atoi(first), second);
  MPI_Finalize();
  return 0;
}
