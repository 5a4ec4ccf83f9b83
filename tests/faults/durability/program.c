// SPDX-License-Identifier: BSD-3-Clause
// A program that writes in many ways, and pauses so that servers can be killed meanwhile: program FOLDER STEPS
// PAUSE_MS. It checks what it reads. Whatever it does is the same each time that it runs.
#include "../checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kRows = 24, kColumns = 64, kSmall = 200 };

static int ranks, pause_ms;
static const char *folder;

static void rest(void) { usleep((useconds_t)(pause_ms * 1000)); }

static int create(const char *name, int mode) {
  char path[4096];
  int file = 0;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
  return file;
}

/// Collective and independent puts of fixed variables, and new variables in between.
static void fixed(int steps) {
  const int file = create("fixed.nc", NC_CLOBBER | NC_64BIT_DATA);
  int dims[2], variables[64], more[64];
  MPI_Offset start[2] = {rank * kRows, 0}, count[2] = {kRows, kColumns};
  double values[kRows * kColumns], got[kRows * kColumns];
  CHECK(ncmpi_def_dim(file, "y", ranks * kRows, &dims[0]));
  CHECK(ncmpi_def_dim(file, "x", kColumns, &dims[1]));
  for (int i = 0; i < steps; ++i) {
    char name[32];
    snprintf(name, sizeof name, "v%d", i);
    CHECK(ncmpi_def_var(file, name, NC_DOUBLE, 2, dims, &variables[i]));
  }
  CHECK(ncmpi_put_att_text(file, NC_GLOBAL, "state", 4, "new "));
  CHECK(ncmpi_enddef(file));
  for (int i = 0; i < steps; ++i) {
    char name[32];
    fill(values, kRows * kColumns, i + rank);
    CHECK(ncmpi_put_vara_double_all(file, variables[i], start, count, values));
    rest();
    snprintf(name, sizeof name, "more%d", i);
    CHECK(ncmpi_redef(file));
    CHECK(ncmpi_put_att_text(file, NC_GLOBAL, name, 9, "redefined"));
    CHECK(ncmpi_def_var(file, name, NC_DOUBLE, 2, dims, &more[i]));
    CHECK(ncmpi_enddef(file));
    CHECK(ncmpi_begin_indep_data(file));
    for (int row = 0; row < kRows; ++row) {
      const MPI_Offset at[2] = {rank * kRows + row, 0}, line[2] = {1, kColumns};
      fill(values, kColumns, row + i);
      CHECK(ncmpi_put_vara_double(file, more[i], at, line, values));
    }
    CHECK(ncmpi_end_indep_data(file));
    CHECK(ncmpi_put_att_text(file, NC_GLOBAL, "state", 4, i % 2 ? "odd " : "even"));
    rest();
    CHECK(ncmpi_get_vara_double_all(file, variables[i / 2], start, count, got));
    expect(got, kRows * kColumns, i / 2 + rank, __LINE__);
  }
  CHECK(ncmpi_close(file));
}

/// Records, by posted puts; fill mode; synced now and then.
static void records(int steps) {
  const int file = create("records.nc", NC_CLOBBER | NC_64BIT_OFFSET);
  int dims[2], posted, buffered, filled, requests[2], states[2];
  double values[kColumns], got[kColumns];
  CHECK(ncmpi_set_fill(file, NC_FILL, NULL));
  CHECK(ncmpi_def_dim(file, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(file, "x", (MPI_Offset)ranks * kColumns, &dims[1]));
  CHECK(ncmpi_def_var(file, "posted", NC_DOUBLE, 2, dims, &posted));
  CHECK(ncmpi_def_var(file, "buffered", NC_DOUBLE, 2, dims, &buffered));
  CHECK(ncmpi_def_var(file, "filled", NC_DOUBLE, 2, dims, &filled));
  CHECK(ncmpi_enddef(file));
  CHECK(ncmpi_buffer_attach(file, 4 * sizeof values));
  for (int i = 0; i < steps; ++i) {
    const MPI_Offset start[2] = {i, rank * kColumns}, count[2] = {1, kColumns};
    CHECK(ncmpi_fill_var_rec(file, filled, i));
    CHECK(ncmpi_fill_var_rec(file, posted, i));
    fill(values, kColumns, i + rank);
    CHECK(ncmpi_iput_vara_double(file, posted, start, count, values, &requests[0]));
    CHECK(ncmpi_bput_vara_double(file, buffered, start, count, values, &requests[1]));
    CHECK(ncmpi_wait_all(file, 2, requests, states));
    CHECK(states[0]);
    CHECK(states[1]);
    rest();
    if (i % 3 == 1) CHECK(ncmpi_sync(file));
    if (i == steps / 2) {
      int added = 0;
      CHECK(ncmpi_redef(file));
      CHECK(ncmpi_def_var(file, "added", NC_DOUBLE, 1, &dims[1], &added));
      CHECK(ncmpi_enddef(file));
    }
    CHECK(ncmpi_get_vara_double_all(file, posted, start, count, got));
    expect(got, kColumns, i + rank, __LINE__);
  }
  CHECK(ncmpi_buffer_detach(file));
  CHECK(ncmpi_close(file));
}

/// Scattered small pieces, and strides; some files open at once, one of them renamed meanwhile; written twice.
static void scattered(int steps) {
  int files[3], variables[3], dim;
  char from[4096], to[4096];
  for (int f = 0; f < 3; ++f) {
    char name[32];
    snprintf(name, sizeof name, "scattered%d.nc", f);
    files[f] = create(name, NC_CLOBBER);
    CHECK(ncmpi_def_dim(files[f], "x", (MPI_Offset)ranks * kSmall * 4, &dim));
    CHECK(ncmpi_def_var(files[f], "v", NC_INT, 1, &dim, &variables[f]));
    CHECK(ncmpi_enddef(files[f]));
  }
  for (int i = 0; i < steps; ++i)
    for (int f = 0; f < 3; ++f) {
      const MPI_Offset start[1] = {rank + (i % 4) * ranks}, count[1] = {kSmall}, stride[1] = {4 * ranks};
      int values[kSmall];
      for (int k = 0; k < kSmall; ++k) values[k] = i * 1000000 + f * 10000 + k;
      CHECK(ncmpi_put_vars_int_all(files[f], variables[f], start, count, stride, values));
      CHECK(ncmpi_begin_indep_data(files[f]));
      for (int k = 0; k < 10; ++k) {
        const MPI_Offset at[1] = {start[0] + (MPI_Offset)k * stride[0] * 2};
        CHECK(ncmpi_put_var1_int(files[f], variables[f], at, &i));
      }
      CHECK(ncmpi_end_indep_data(files[f]));
      if (i == steps / 2 && f == 1) {
        MPI_Barrier(MPI_COMM_WORLD);
        snprintf(from, sizeof from, "%s/scattered1.nc", folder);
        snprintf(to, sizeof to, "%s/renamed.nc", folder);
        if (rank == 0 && rename(from, to) != 0) check(NC_EFILE, __LINE__);
        MPI_Barrier(MPI_COMM_WORLD);
      }
      rest();
    }
  for (int f = 0; f < 3; ++f) CHECK(ncmpi_close(files[f]));
}

/// Files that are opened again: to be read, and twice.
static void again(int steps) {
  char path[4096];
  int reader, writer, v;
  double values[kColumns];
  int got[kSmall];
  snprintf(path, sizeof path, "%s/scattered2.nc", folder);
  CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &reader));
  for (int i = 0; i < steps; ++i) {
    const MPI_Offset start[1] = {rank}, count[1] = {kSmall}, stride[1] = {4 * ranks};
    CHECK(ncmpi_get_vars_int_all(reader, 0, start, count, stride, got));
    rest();
  }
  CHECK(ncmpi_close(reader));
  snprintf(path, sizeof path, "%s/records.nc", folder);
  CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &writer));
  CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &reader));
  CHECK(ncmpi_inq_varid(writer, "posted", &v));
  for (int i = 0; i < steps; ++i) {
    const MPI_Offset start[2] = {0, rank * kColumns}, count[2] = {1, kColumns};
    fill(values, kColumns, 2 * i + rank);
    CHECK(ncmpi_put_vara_double_all(writer, v, start, count, values));
    fill(values, kColumns, 2 * i + 1 + rank);
    CHECK(ncmpi_put_vara_double_all(reader, v, start, count, values));
    rest();
  }
  CHECK(ncmpi_close(writer));
  CHECK(ncmpi_close(reader));
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  folder = argv[1];
  const int steps = atoi(argv[2]);
  pause_ms = atoi(argv[3]);
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  fixed(steps);
  records(steps);
  scattered(steps);
  again(steps);
  MPI_Finalize();
  return 0;
}
