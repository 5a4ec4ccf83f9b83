/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks that overwrite each other's data, call after call, in several open files at once, while some of them dawdle;
 * each read is compared with what must be there. Leaves its files, for comparison with those of a native run.
 *
 *   mpiexec -n 3 overwrites PREFIX [SEED [STEPS]]
 *
 * All ranks draw the same decisions, so each knows what all of them write. Ranks never write the same element in one
 * step, every element is written at the beginning, and before independent access there is a barrier: what a program may
 * rely on.
 */
#include "random.h"

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kFiles = 3, kRows = 48, kColumns = 2048, kRecords = 4, kVars = 3, kGrid = 0, kTable = 1, kHistory = 2 };

static int rank, nprocs, mistakes;

static struct {
  int id, varids[kVars],
      values[kVars][kRows * kColumns]; /* of the history: kRecords records of kRows / kRecords rows */
} files[kFiles];

/* Rows [row, row + rows), columns [column, column + columns); none if `rows` is 0. */
typedef struct {
  int row, rows, column, columns;
} Part;

/* Some ranks are late. */
static void dawdle(void) {
  if (next(&local_state) % 4 == 0) usleep((useconds_t)(next(&local_state) % 4000));
}

static void must(int code, const char *what, int step) {
  if (code == NC_NOERR) return;
  fprintf(stderr, "rank %d, step %d: %s: %s\n", rank, step, what, ncmpi_strerror(code));
  mistakes++;
}

/* What `who` writes to element `at` in step `step`. */
static int value_of(int who, int step, int at) { return step * 1000003 + who * 7919 + at; }

/* The part of the variable that `who` has in a step that turns the ranks by `turn`. */
static Part part_of(int who, int turn, int narrow) {
  int place = (who + turn) % nprocs, first = place * kRows / nprocs, end = (place + 1) * kRows / nprocs;
  Part part = {first, end - first, 0, kColumns};
  if (narrow) part.column = (turn * 37) % (kColumns - 64), part.columns = 1 + (turn * 13) % 64;
  return part;
}

/* In the history a part must lie within one record. */
static Part within_record(Part part) {
  const int per_record = kRows / kRecords, left = per_record - part.row % per_record;
  if (part.rows > left) part.rows = left;
  return part;
}

static Part choose(int var, int who, int turn, int narrow) {
  Part part = part_of(who, turn, narrow);
  return var == kHistory ? within_record(part) : part;
}

static void region(int var, Part part, MPI_Offset *start, MPI_Offset *count) {
  const int per_record = kRows / kRecords;
  int d = 0;
  if (var == kHistory) start[d] = part.row / per_record, count[d++] = part.rows > 0;
  start[d] = var == kHistory ? part.row % per_record : part.row, count[d++] = part.rows;
  start[d] = part.column, count[d] = part.columns;
}

/* The place in its variable of element `i` of a part. */
static int place_of(Part part, int i) {
  return (part.row + i / part.columns) * kColumns + part.column + i % part.columns;
}

/* All ranks take note of what `who` writes. */
static void note(int f, int var, int who, int step, Part part) {
  for (int i = 0; i < part.rows * part.columns; i++)
    files[f].values[var][place_of(part, i)] = value_of(who, step, place_of(part, i));
}

/* This rank's data for a part; freed by the caller. */
static int *data_for(int step, Part part) {
  int *data = malloc(sizeof *data * (size_t)(part.rows * part.columns + 1));
  for (int i = 0; i < part.rows * part.columns; i++) data[i] = value_of(rank, step, place_of(part, i));
  return data;
}

static void check(int f, int var, Part part, const int *data, int step, const char *how) {
  for (int i = 0; i < part.rows * part.columns; i++) {
    const int at = place_of(part, i), wanted = files[f].values[var][at];
    if (data[i] == wanted) continue;
    fprintf(stderr, "rank %d, step %d: %s of file %d, variable %d, element %d: %d, not %d\n", rank, step, how, f, var,
            at, data[i], wanted);
    mistakes++;
    return;
  }
}

static void note_all(int f, int var, int step, int turn, int narrow, int idle) {
  for (int who = 0; who < nprocs; who++)
    if (who != idle) note(f, var, who, step, choose(var, who, turn, narrow));
}

/* One put, collective or not; one rank may have nothing to write. */
static void put(int f, int var, int step, int turn, int narrow, int idle, int collective) {
  Part part = choose(var, rank, turn, narrow);
  if (rank == idle) part.rows = 0;
  MPI_Offset start[3], count[3];
  region(var, part, start, count);
  int *data = data_for(step, part);
  dawdle();
  must(
      (collective ? ncmpi_put_vara_int_all : ncmpi_put_vara_int)(files[f].id, files[f].varids[var], start, count, data),
      "put", step);
  for (int i = 0; i < part.rows * part.columns; i++) data[i] = -1;
  free(data);
  note_all(f, var, step, turn, narrow, idle);
}

/* What another rank has, or has written. */
static void get(int f, int var, int step, int turn, int collective) {
  const Part part = choose(var, rank, turn, 0);
  MPI_Offset start[3], count[3];
  region(var, part, start, count);
  int *data = calloc((size_t)(part.rows * part.columns), sizeof *data);
  dawdle();
  must(
      (collective ? ncmpi_get_vara_int_all : ncmpi_get_vara_int)(files[f].id, files[f].varids[var], start, count, data),
      "get", step);
  check(f, var, part, data, step, collective ? "collective get" : "independent get");
  free(data);
}

static void put_independently(int f, int step, int turn) {
  dawdle();
  MPI_Barrier(MPI_COMM_WORLD);
  must(ncmpi_begin_indep_data(files[f].id), "begin_indep", step);
  const int idle = common(nprocs), var = common(kVars), narrow = common(2);
  if (rank != idle)
    put(f, var, step, turn, narrow, idle, 0);
  else
    note_all(f, var, step, turn, narrow, idle);
  must(ncmpi_end_indep_data(files[f].id), "end_indep", step);
}

static void get_independently(int f, int step, int turn) {
  dawdle();
  MPI_Barrier(MPI_COMM_WORLD);
  must(ncmpi_begin_indep_data(files[f].id), "begin_indep", step);
  get(f, common(kVars), step, turn, 0);
  must(ncmpi_end_indep_data(files[f].id), "end_indep", step);
}

/* Each rank posts writes of several variables; those of one rank may have nothing in them. */
static void post(int f, int step, int turn) {
  int requests[kVars], codes[kVars], *data[kVars];
  const int idle = common(2 * nprocs), narrow = common(2);
  for (int var = 0; var < kVars; var++) {
    Part part = choose(var, rank, turn + var, narrow);
    if (rank == idle) part.rows = 0;
    MPI_Offset start[3], count[3];
    region(var, part, start, count);
    data[var] = data_for(step, part);
    must(ncmpi_iput_vara_int(files[f].id, files[f].varids[var], start, count, data[var], &requests[var]), "iput", step);
    note_all(f, var, step, turn + var, narrow, idle);
  }
  dawdle();
  must(ncmpi_wait_all(files[f].id, kVars, requests, codes), "wait_all", step);
  for (int var = 0; var < kVars; var++) free(data[var]);
}

/* A put of which one rank names no variable; its code is printed. Then it is made good. */
static void put_wrongly(int f, int step, int turn) {
  const int culprit = common(nprocs), var = common(2);
  const Part part = choose(var, rank, turn, 0);
  MPI_Offset start[3], count[3];
  region(var, part, start, count);
  int *data = data_for(step, part), code;
  dawdle();
  code = ncmpi_put_vara_int_all(files[f].id, rank == culprit ? 4711 : files[f].varids[var], start, count, data);
  free(data);
  int *codes = calloc((size_t)nprocs, sizeof *codes);
  MPI_Gather(&code, 1, MPI_INT, codes, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int who = 0; rank == 0 && who < nprocs; who++) printf("step %d, rank %d: %d\n", step, who, codes[who]);
  free(codes);
  put(f, var, step + 1, turn + 1, 0, -1, 1);
}

static void create(int f, const char *prefix) {
  char path[4096];
  int dims[4];
  snprintf(path, sizeof path, "%s%d.nc", prefix, f);
  must(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &files[f].id), "create", -1);
  ncmpi_def_dim(files[f].id, "time", NC_UNLIMITED, &dims[0]);
  ncmpi_def_dim(files[f].id, "part", kRows / kRecords, &dims[1]);
  ncmpi_def_dim(files[f].id, "column", kColumns, &dims[2]);
  ncmpi_def_dim(files[f].id, "row", kRows, &dims[3]);
  const int grid[2] = {dims[3], dims[2]};
  must(ncmpi_def_var(files[f].id, "grid", NC_INT, 2, grid, &files[f].varids[kGrid]), "def_var", -1);
  must(ncmpi_def_var(files[f].id, "table", NC_DOUBLE, 2, grid, &files[f].varids[kTable]), "def_var", -1);
  must(ncmpi_def_var(files[f].id, "history", NC_INT, 3, dims, &files[f].varids[kHistory]), "def_var", -1);
  must(ncmpi_enddef(files[f].id), "enddef", -1);
}

/* Everything is written once. */
static void fill(int f, int step) {
  for (int var = 0; var < kHistory; var++) put(f, var, step, f, 0, -1, 1);
  const int columns = kColumns / nprocs;
  for (int row = 0; row < kRows; row += kRows / kRecords) {
    for (int who = 0; who < nprocs; who++) {
      const Part part = {row, kRows / kRecords, who * columns, who == nprocs - 1 ? kColumns - who * columns : columns};
      note(f, kHistory, who, step, part);
      if (who != rank) continue;
      MPI_Offset start[3], count[3];
      region(kHistory, part, start, count);
      int *data = data_for(step, part);
      dawdle();
      must(ncmpi_put_vara_int_all(files[f].id, files[f].varids[kHistory], start, count, data), "put of a record", step);
      free(data);
    }
  }
}

/* Ranks overwrite each other's parts, one call right after the other. */
static void put_repeatedly(int f, int var, int step, int turn) {
  for (int i = 0, n = 2 + common(5); i < n; i++) {
    turn += 1 + common(3);
    const int narrow = common(4) == 0, idle = common(3 * nprocs);
    put(f, var, step + i, turn, narrow, idle, 1);
  }
  if (common(2)) get(f, var, step, turn, 1);
}

static void do_step(int step) {
  const int f = common(kFiles), var = common(kVars), turn = common(1000);
  switch (common(12)) {
    case 0:
    case 1:
    case 2:
    case 3: put_repeatedly(f, var, step, turn); break;
    case 4:
    case 5: get(f, var, step, turn, 1); break;
    case 6: put_independently(f, step, turn); break;
    case 7: get_independently(f, step, turn); break;
    case 8:
    case 9: post(f, step, turn); break;
    case 10: put_wrongly(f, step, turn); break;
    default: must(ncmpi_sync(files[f].id), "sync", step);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &nprocs);
  if (argc < 2) {
    if (rank == 0) fprintf(stderr, "usage: overwrites PREFIX [SEED [STEPS]]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  common_state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
  local_state = common_state * 1000003u + (uint64_t)rank + 17;
  const int steps = argc > 3 ? atoi(argv[3]) : 80;
  for (int f = 0; f < kFiles; f++) create(f, argv[1]);
  for (int f = 0; f < kFiles; f++) fill(f, 1 + f);
  for (int step = 1; step <= steps; step++) do_step(step * 10);
  for (int f = 0; f < kFiles; f++) {
    for (int var = 0; var < kVars; var++) get(f, var, -2, f + var, 1);
    put(f, f % kVars, steps * 10 + 10, 7 + f, 0, -1, 1);
    dawdle();
    must(ncmpi_close(files[f].id), "close", -2);
  }
  int all = 0;
  MPI_Reduce(&mistakes, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d mistakes\n", all);
  MPI_Finalize();
  return mistakes != 0;
}
