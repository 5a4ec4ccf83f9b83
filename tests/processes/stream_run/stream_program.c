/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_program KIND PATH RECORDS: writes netCDF files with PnetCDF in one of the ways in which programs do. Of
 * numbered files PATH has a %d. Each rank has its rows of y. */
#include <mpi.h>
#include <pnetcdf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kRows = 3, kColumns = 5 };

static int rank, ranks;
static char path[4096]; /* of the file that is being written */

static void check(int error, int line) {
  if (error == NC_NOERR) return;
  fprintf(stderr, "line %d: %s\n", line, ncmpi_strerror(error));
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, __LINE__)

struct File {
  int id, grid, name, t, p;
};

/* T and p have records, unless `dims` is 2; grid and name have none. */
static struct File define(int dims) {
  struct File f;
  int x, y, time, letters;
  const signed char small[] = {-1, 2};
  const unsigned long long large = 18446744073709551615ULL;
  const float fill = -99.5F;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &f.id));
  CHECK(ncmpi_def_dim(f.id, "x", kColumns, &x));
  CHECK(ncmpi_def_dim(f.id, "time", dims == 3 ? NC_UNLIMITED : 2, &time));
  CHECK(ncmpi_def_dim(f.id, "y", (MPI_Offset)kRows * ranks, &y));
  CHECK(ncmpi_def_dim(f.id, "letters", 6, &letters));
  CHECK(ncmpi_def_dim(f.id, "nobody's", 7, &(int){0}));
  const int of_t[] = {time, y, x}, of_grid[] = {y, x};
  CHECK(ncmpi_def_var(f.id, "T", NC_FLOAT, dims, dims == 3 ? of_t : of_grid, &f.t));
  CHECK(ncmpi_def_var(f.id, "grid", NC_DOUBLE, 2, of_grid, &f.grid));
  CHECK(ncmpi_def_var(f.id, "name", NC_CHAR, 1, &letters, &f.name));
  CHECK(ncmpi_def_var(f.id, "p", NC_INT64, dims - 1, dims == 3 ? of_t : of_grid, &f.p));
  CHECK(ncmpi_put_att_text(f.id, f.t, "units", 1, "K"));
  CHECK(ncmpi_put_att_float(f.id, f.t, "_FillValue", NC_FLOAT, 1, &fill));
  CHECK(ncmpi_put_att_schar(f.id, f.p, "range", NC_BYTE, 2, small));
  CHECK(ncmpi_put_att_ulonglong(f.id, NC_GLOBAL, "largest", NC_UINT64, 1, &large));
  CHECK(ncmpi_put_att_text(f.id, NC_GLOBAL, "title", 0, ""));
  CHECK(ncmpi_enddef(f.id));
  return f;
}

static float *values_of(int record) {
  static float values[kRows * kColumns];
  for (int i = 0; i < kRows * kColumns; ++i) values[i] = (float)(1000 * record + 100 * rank + i);
  return values;
}
static long long *numbers_of(int record) {
  static long long numbers[kRows];
  for (int i = 0; i < kRows; ++i) numbers[i] = 1000000000000LL * record + 10 * rank + i;
  return numbers;
}

static void put_fixed(const struct File *f) {
  double grid[kRows * kColumns];
  for (int i = 0; i < kRows * kColumns; ++i) grid[i] = rank + 0.01 * i;
  const MPI_Offset start[] = {(MPI_Offset)kRows * rank, 0}, count[] = {kRows, kColumns}, zero = 0,
                   six = rank == 0 ? 6 : 0;
  CHECK(ncmpi_put_vara_double_all(f->id, f->grid, start, count, grid));
  CHECK(ncmpi_put_vara_text_all(f->id, f->name, &zero, &six, "nessie"));
}

static void put_t(const struct File *f, int record) {
  const MPI_Offset start[] = {record, (MPI_Offset)kRows * rank, 0}, count[] = {1, kRows, kColumns};
  CHECK(ncmpi_put_vara_float_all(f->id, f->t, start, count, values_of(record)));
}
static void put_p(const struct File *f, int record) {
  const MPI_Offset start[] = {record, (MPI_Offset)kRows * rank}, count[] = {1, kRows};
  CHECK(ncmpi_put_vara_longlong_all(f->id, f->p, start, count, numbers_of(record)));
}

static void collective(struct File *f, int records) {
  for (int record = 0; record < records; ++record) put_t(f, record), put_p(f, record);
}

static void one_variable_then_the_next(struct File *f, int records) {
  for (int record = 0; record < records; ++record) put_t(f, record);
  for (int record = 0; record < records; ++record) put_p(f, record);
}

static void wait_all(struct File *f, int records) {
  CHECK(ncmpi_buffer_attach(f->id, 4096));
  for (int record = 0; record < records; ++record) {
    const MPI_Offset start[] = {record, (MPI_Offset)kRows * rank, 0}, count[] = {1, kRows, kColumns};
    int requests[2], status[2];
    CHECK(ncmpi_iput_vara_float(f->id, f->t, start, count, values_of(record), &requests[0]));
    CHECK(ncmpi_bput_vara_longlong(f->id, f->p, start, count, numbers_of(record), &requests[1]));
    CHECK(ncmpi_wait_all(f->id, 2, requests, status));
    CHECK(status[0]), CHECK(status[1]);
  }
  CHECK(ncmpi_buffer_detach(f->id));
}

static void vard(struct File *f, int records) {
  for (int record = 0; record < records; ++record) {
    MPI_Offset where;
    MPI_Datatype rows, from_begin;
    const int sizes[] = {kRows * ranks, kColumns}, its[] = {kRows, kColumns}, from[] = {kRows * rank, 0};
    MPI_Offset record_bytes;
    CHECK(ncmpi_inq_recsize(f->id, &record_bytes));
    MPI_Type_create_subarray(2, sizes, its, from, MPI_ORDER_C, MPI_FLOAT, &rows);
    where = record * record_bytes;
    MPI_Type_create_hindexed(1, &(int){1}, &(MPI_Aint){where}, rows, &from_begin);
    MPI_Type_commit(&from_begin);
    CHECK(ncmpi_put_vard_all(f->id, f->t, from_begin, values_of(record), kRows * kColumns, MPI_FLOAT));
    MPI_Type_free(&from_begin), MPI_Type_free(&rows);
    put_p(f, record);
  }
}

/* And one of the fixed variables once more, when it was complete already. */
static void independent(struct File *f, int records) {
  for (int record = 0; record < records; ++record) {
    const MPI_Offset start[] = {record, (MPI_Offset)kRows * rank, 0}, count[] = {1, kRows, kColumns}, zero = 0, six = 6;
    CHECK(ncmpi_begin_indep_data(f->id));
    CHECK(ncmpi_put_vara_float(f->id, f->t, start, count, values_of(record)));
    CHECK(ncmpi_put_vara_longlong(f->id, f->p, start, count, numbers_of(record)));
    if (record > 0 && rank == ranks - 1) CHECK(ncmpi_put_vara_text(f->id, f->name, &zero, &six, "NESSIE"));
    CHECK(ncmpi_end_indep_data(f->id));
    CHECK(ncmpi_sync(f->id));
  }
}

/* Another variable, another name, and a longer attribute, in the middle. */
static void redefined(struct File *f, int records) {
  int y, more;
  collective(f, records / 2);
  CHECK(ncmpi_redef(f->id));
  CHECK(ncmpi_inq_dimid(f->id, "y", &y));
  CHECK(ncmpi_def_var(f->id, "more", NC_SHORT, 1, &y, &more));
  CHECK(ncmpi_rename_var(f->id, f->p, "pressure"));
  CHECK(ncmpi_put_att_text(f->id, f->t, "units", 6, "kelvin"));
  CHECK(ncmpi_enddef(f->id));
  const MPI_Offset start = (MPI_Offset)kRows * rank, count = kRows;
  CHECK(ncmpi_put_vara_longlong_all(f->id, more, &start, &count, numbers_of(0)));
  for (int record = records / 2; record < records; ++record) put_t(f, record), put_p(f, record);
}

/* Never in collective mode between two syncs; what was synced is put once more. */
static void independent_throughout(struct File *f, int records) {
  double grid = -1.5;
  CHECK(ncmpi_begin_indep_data(f->id));
  for (int record = 0; record < records; ++record) {
    const MPI_Offset start[] = {record, (MPI_Offset)kRows * rank, 0}, count[] = {1, kRows, kColumns};
    const MPI_Offset corner[] = {(MPI_Offset)kRows * ranks - 1, record};
    CHECK(ncmpi_put_vara_float(f->id, f->t, start, count, values_of(record)));
    CHECK(ncmpi_put_vara_longlong(f->id, f->p, start, count, numbers_of(record)));
    if (rank == ranks - 1) CHECK(ncmpi_put_var1_double(f->id, f->grid, corner, &grid));
    CHECK(ncmpi_sync(f->id));
  }
  CHECK(ncmpi_end_indep_data(f->id));
}

/* A fixed variable once more, of which only the last rank has some, when it was synced before. */
static void fixed_of_one_rank(struct File *f, int records) {
  for (int record = 0; record < records; ++record) {
    const MPI_Offset zero = 0, six = 6;
    int request = NC_REQ_NULL, status;
    put_t(f, record), put_p(f, record);
    if (rank == ranks - 1)
      CHECK(ncmpi_iput_vara_text(f->id, f->name, &zero, &six, record % 2 == 0 ? "nessie" : "NESSIE", &request));
    CHECK(ncmpi_wait_all(f->id, NC_REQ_ALL, &request, &status));
    CHECK(ncmpi_sync(f->id));
  }
}

/* Closed after each record, and opened again. */
static void appended(struct File *f, int records) {
  for (int record = 0; record < records; ++record) {
    if (record > 0) CHECK(ncmpi_close(f->id));
    if (record > 0) CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &f->id));
    put_t(f, record), put_p(f, record);
  }
}

/* Made anew, with more records, when there is a file called "anew". */
static void anew(struct File *f, int records) {
  collective(f, records);
  CHECK(ncmpi_close(f->id));
  while (rank == 0 && access("anew", F_OK) != 0) usleep(10000);
  MPI_Barrier(MPI_COMM_WORLD);
  *f = define(3);
  put_fixed(f);
  collective(f, records + 2);
}

static void fixed(struct File *f, int records) {
  for (int record = 0; record < records; ++record) {
    const MPI_Offset start[] = {(MPI_Offset)kRows * rank, 0}, count[] = {kRows, kColumns};
    CHECK(ncmpi_put_vara_float_all(f->id, f->t, start, count, values_of(record)));
    CHECK(ncmpi_put_vara_longlong_all(f->id, f->p, start, count, numbers_of(record)));
    CHECK(ncmpi_sync(f->id));
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  static const struct {
    const char *kind;
    void (*write)(struct File *, int records);
    int dims;
  } all[] = {{"collective", collective, 3},
             {"one_variable_then_the_next", one_variable_then_the_next, 3},
             {"wait_all", wait_all, 3},
             {"vard", vard, 3},
             {"independent", independent, 3},
             {"independent_throughout", independent_throughout, 3},
             {"fixed_of_one_rank", fixed_of_one_rank, 3},
             {"appended", appended, 3},
             {"anew", anew, 3},
             {"redefined", redefined, 3},
             {"fixed", fixed, 2}};
  const int records = argc == 4 ? atoi(argv[3]) : 0;
  const int files = argc == 4 && strchr(argv[2], '%') != NULL ? records : 1;
  for (size_t i = 0; argc == 4 && i < sizeof all / sizeof *all; ++i) {
    if (strcmp(all[i].kind, argv[1]) != 0) continue;
    for (int number = 0; number < files; ++number) {
      snprintf(path, sizeof path, argv[2], number);
      struct File file = define(all[i].dims);
      put_fixed(&file);
      all[i].write(&file, files == 1 ? records : number + 1);
      CHECK(ncmpi_close(file.id));
    }
    MPI_Finalize();
    return 0;
  }
  fprintf(stderr, "usage: stream_program KIND PATH RECORDS\n");
  MPI_Finalize();
  return 2;
}
