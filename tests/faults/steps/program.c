// SPDX-License-Identifier: BSD-3-Clause
// A short program that does each thing once: program FOLDER. What was acknowledged, by a sync or a close, it says in
// FOLDER/acknowledged, a line each time. program FOLDER LINES reads the files, of which so much was acknowledged.
#include "../checks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kRows = 4, kColumns = 16, kRecords = 3, kRanks = 2 };
enum { kSynced = 1, kClosed, kRecordsClosed, kReopenedClosed };  // the lines

static const char *folder;

static const char *path_of(const char *name) {
  static char paths[2][4096];
  static int next;
  next = !next;
  snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
  return paths[next];
}

/// The same on each rank when it returns.
static void acknowledge(const char *what) {
  if (rank == 0) {
    const int file = open(path_of("acknowledged"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || write(file, what, strlen(what)) < 0 || close(file) != 0) check(NC_EWRITE, __LINE__);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static int create(const char *name, int mode) {
  int file = 0;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path_of(name), mode, MPI_INFO_NULL, &file));
  return file;
}

static int open_again(const char *name, int mode) {
  int file = 0;
  CHECK(ncmpi_open(MPI_COMM_WORLD, path_of(name), mode, MPI_INFO_NULL, &file));
  return file;
}

/// Fixed variables: collective, independent and strided puts, sync, new definitions, a new name for the file.
static void fixed(void) {
  const int file = create("fixed.nc", NC_CLOBBER | NC_64BIT_DATA);
  const MPI_Offset start[2] = {rank * kRows, 0}, count[2] = {kRows, kColumns};
  const MPI_Offset odd[2] = {rank * kRows, 1}, halves[2] = {kRows, kColumns / 2}, stride[2] = {1, 2};
  double values[kRows * kColumns], got[kRows * kColumns];
  int dims[2], together, alone, strided, later, added;
  CHECK(ncmpi_def_dim(file, "y", kRanks * kRows, &dims[0]));
  CHECK(ncmpi_def_dim(file, "x", kColumns, &dims[1]));
  CHECK(ncmpi_def_var(file, "together", NC_DOUBLE, 2, dims, &together));
  CHECK(ncmpi_def_var(file, "alone", NC_DOUBLE, 2, dims, &alone));
  CHECK(ncmpi_def_var(file, "strided", NC_DOUBLE, 2, dims, &strided));
  CHECK(ncmpi_def_var(file, "later", NC_DOUBLE, 2, dims, &later));
  CHECK(ncmpi_put_att_text(file, NC_GLOBAL, "state", 3, "new"));
  CHECK(ncmpi_enddef(file));
  fill(values, kRows * kColumns, 1 + rank);
  CHECK(ncmpi_put_vara_double_all(file, together, start, count, values));
  CHECK(ncmpi_begin_indep_data(file));
  for (int row = 0; row < kRows; ++row) {
    const MPI_Offset at[2] = {rank * kRows + row, 0}, line[2] = {1, kColumns};
    CHECK(ncmpi_put_vara_double(file, alone, at, line, values + row * kColumns));
  }
  CHECK(ncmpi_end_indep_data(file));
  CHECK(ncmpi_sync(file));
  acknowledge("fixed.nc is synced\n");
  for (int column = 0; column < 2; ++column) {
    const MPI_Offset at[2] = {odd[0], column};
    CHECK(ncmpi_put_vars_double_all(file, strided, at, halves, stride, values));
  }
  CHECK(ncmpi_redef(file));
  CHECK(ncmpi_put_att_text(file, NC_GLOBAL, "more", 9, "redefined"));
  CHECK(ncmpi_def_var(file, "added", NC_DOUBLE, 2, dims, &added));
  CHECK(ncmpi_enddef(file));
  CHECK(ncmpi_put_vara_double_all(file, added, start, count, values));
  CHECK(ncmpi_put_att_text(file, NC_GLOBAL, "state", 3, "old"));
  CHECK(ncmpi_rename_var(file, alone, "apart"));
  if (rank == 0 && rename(path_of("fixed.nc"), path_of("renamed.nc")) != 0) check(NC_EFILE, __LINE__);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(ncmpi_get_vara_double_all(file, together, start, count, got));
  expect(got, kRows * kColumns, 1 + rank, __LINE__);
  CHECK(ncmpi_close(file));
  acknowledge("renamed.nc is closed\n");
}

/// Records: posted and buffered puts, and fill values.
static void records(void) {
  const int file = create("records.nc", NC_CLOBBER | NC_64BIT_OFFSET);
  double values[kColumns], got[kColumns];
  int dims[2], posted, buffered, filled;
  CHECK(ncmpi_set_fill(file, NC_FILL, NULL));
  CHECK(ncmpi_def_dim(file, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(file, "x", kRanks * kColumns, &dims[1]));
  CHECK(ncmpi_def_var(file, "posted", NC_DOUBLE, 2, dims, &posted));
  CHECK(ncmpi_def_var(file, "buffered", NC_DOUBLE, 2, dims, &buffered));
  CHECK(ncmpi_def_var(file, "filled", NC_DOUBLE, 2, dims, &filled));
  CHECK(ncmpi_enddef(file));
  CHECK(ncmpi_buffer_attach(file, 2 * sizeof values));
  for (int i = 0; i < kRecords; ++i) {
    const MPI_Offset start[2] = {i, rank * kColumns}, count[2] = {1, kColumns};
    int requests[2], states[2];
    CHECK(ncmpi_fill_var_rec(file, filled, i));
    fill(values, kColumns, i + rank);
    CHECK(ncmpi_iput_vara_double(file, posted, start, count, values, &requests[0]));
    CHECK(ncmpi_bput_vara_double(file, buffered, start, count, values, &requests[1]));
    CHECK(ncmpi_wait_all(file, 2, requests, states));
    CHECK(states[0]);
    CHECK(states[1]);
    CHECK(ncmpi_get_vara_double_all(file, posted, start, count, got));
    expect(got, kColumns, i + rank, __LINE__);
  }
  CHECK(ncmpi_buffer_detach(file));
  CHECK(ncmpi_close(file));
  acknowledge("records.nc is closed\n");
}

/// A file that is opened again, to be written and then to be read.
static void again(void) {
  const MPI_Offset start[2] = {rank * kRows, 0}, count[2] = {kRows, kColumns};
  double values[kRows * kColumns], got[kRows * kColumns];
  int later, file = open_again("renamed.nc", NC_WRITE);
  CHECK(ncmpi_inq_varid(file, "later", &later));
  fill(values, kRows * kColumns, 7 + rank);
  CHECK(ncmpi_put_vara_double_all(file, later, start, count, values));
  CHECK(ncmpi_close(file));
  acknowledge("renamed.nc is closed again\n");
  file = open_again("renamed.nc", NC_NOWRITE);
  CHECK(ncmpi_get_vara_double_all(file, later, start, count, got));
  expect(got, kRows * kColumns, 7 + rank, __LINE__);
  CHECK(ncmpi_close(file));
}

static void expect_variable(int file, const char *name, const MPI_Offset *start, const MPI_Offset *count, int seed,
                            int line) {
  double got[kRows * kColumns];
  int variable = -1;
  check(ncmpi_inq_varid(file, name, &variable), line);
  check(ncmpi_get_vara_double_all(file, variable, start, count, got), line);
  expect(got, (int)(count[0] * count[1]), seed, line);
}
#define EXPECT(file, name, start, count, seed) expect_variable(file, name, start, count, seed, __LINE__)

/// Of one process, which reads what each of both has written.
static void read_acknowledged(int lines) {
  const int is_renamed = access(path_of("renamed.nc"), F_OK) == 0;
  const int fixed = lines >= kSynced ? open_again(is_renamed ? "renamed.nc" : "fixed.nc", NC_NOWRITE) : -1;
  const int records = lines >= kRecordsClosed ? open_again("records.nc", NC_NOWRITE) : -1;
  const MPI_Offset count[2] = {kRows, kColumns}, line[2] = {1, kColumns};
  int is_apart = 0;
  for (int writer = 0; writer < kRanks; ++writer) {
    const MPI_Offset start[2] = {writer * kRows, 0};
    if (fixed >= 0) EXPECT(fixed, "together", start, count, 1 + writer);
    if (fixed >= 0)
      EXPECT(fixed, ncmpi_inq_varid(fixed, "apart", &is_apart) == 0 ? "apart" : "alone", start, count, 1 + writer);
    if (lines >= kClosed) EXPECT(fixed, "added", start, count, 1 + writer);
    if (lines >= kReopenedClosed) EXPECT(fixed, "later", start, count, 7 + writer);
    for (int i = 0; i < kRecords && records >= 0; ++i) {
      const MPI_Offset at[2] = {i, writer * kColumns};
      EXPECT(records, "posted", at, line, i + writer);
      EXPECT(records, "buffered", at, line, i + writer);
    }
  }
  if (fixed >= 0) CHECK(ncmpi_close(fixed));
  if (records >= 0) CHECK(ncmpi_close(records));
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3) return 2;
  folder = argv[1];
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc == 3) {
    read_acknowledged(atoi(argv[2]));
  } else {
    fixed();
    records();
    again();
  }
  MPI_Finalize();
  return 0;
}
