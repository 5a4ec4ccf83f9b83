/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The I/O kernel of a combustion simulation (S3D): every process owns a block of ten three-dimensional fields of a box
 * that is decomposed in x, y and z, and writes them, step after step, with PnetCDF. What the fields hold follows from
 * their place in the box, so that --verify can read the files back and check every value.
 *
 * Build:   mpicc -O2 checkpoint.c -o checkpoint -lpnetcdf -lm
 * Run:     mpiexec -n 8 ./checkpoint --n 32 --steps 4 --prefix /tmp/s3d --verify
 * Options: --n N         cells per process and direction (32)
 *          --grid X,Y,Z  cells of the whole box instead: files are then the same bytes on any number of processes
 *          --steps S     checkpoints (4)              --compute-ms T  CPU time spent before each of them (0)
 *          --format F    1, 2 or 5: CDF version (5)   --prefix P      files are "P.0001.nc", … (s3d)
 *          --records     one file "P.nc" that grows by a record each step, instead of a file a step
 *          --nonblocking ncmpi_iput_… for all fields, then one ncmpi_wait_all, instead of a collective put a field
 *          --verify      reads everything back through PnetCDF and compares
 * Expected output (the times differ):
 *          64 x 64 x 64 cells on 8 processes (2 x 2 x 2), 4 checkpoints of 20.0 MiB
 *          step    1  checkpoint  0.026 s   801.2 MB/s
 *          ...
 *          verified 4 checkpoints: every value is as it was written
 *          result bytes=83886080 checkpoints=4 io_s=0.139627 compute_s=0.000012 run_s=0.139639
 */
#include <math.h>
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kFields = 10 };

static const char *const kFieldNames[kFields] = {"fuel",        "oxidizer",   "radical",    "product",    "inert",
                                                 "temperature", "velocity_x", "velocity_y", "velocity_z", "pressure"};

typedef struct {
  int n, grid[3], steps, compute_ms, format;
  int records, nonblocking, verify;
  const char *prefix;
} Options;

/* Axes are in C order: 0 is z, the slowest. */
typedef struct {
  MPI_Comm comm;
  int rank, processes;
  int shape[3];
  MPI_Offset cells[3], first[3], local[3];
  MPI_Offset local_cells;
  double *field[kFields];
} Domain;

typedef struct {
  int ncid, variable[kFields], time;
} File;

static void die(const char *message, const char *detail) {
  fprintf(stderr, "checkpoint: %s%s\n", message, detail);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int status) {
  if (status != NC_NOERR) die("PnetCDF: ", ncmpi_strerror(status));
}

static int number(const char *key, const char *value) {
  char *end = NULL;
  long parsed = value ? strtol(value, &end, 10) : -1;
  if (!value || *value == '\0' || *end != '\0' || parsed < 0 || parsed > 1 << 24) die("needs a number: ", key);
  return (int)parsed;
}

static Options read_options(int argc, char **argv) {
  Options o = {.n = 32, .steps = 4, .format = 5, .prefix = "s3d"};
  for (int i = 1; i < argc; i++) {
    const char *key = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(key, "--records")) {
      o.records = 1;
      continue;
    }
    if (!strcmp(key, "--nonblocking")) {
      o.nonblocking = 1;
      continue;
    }
    if (!strcmp(key, "--verify")) {
      o.verify = 1;
      continue;
    }
    if (!strcmp(key, "--n"))
      o.n = number(key, value);
    else if (!strcmp(key, "--steps"))
      o.steps = number(key, value);
    else if (!strcmp(key, "--compute-ms"))
      o.compute_ms = number(key, value);
    else if (!strcmp(key, "--format"))
      o.format = number(key, value);
    else if (!strcmp(key, "--prefix") && value)
      o.prefix = value;
    else if (!strcmp(key, "--grid") && value && sscanf(value, "%d,%d,%d", &o.grid[2], &o.grid[1], &o.grid[0]) == 3) {
    } else
      die("cannot use this option, see the head of the source: ", key);
    i++;
  }
  if (o.n < 1 || o.steps < 1) die("--n and --steps must be positive", "");
  if (o.format != 1 && o.format != 2 && o.format != 5) die("--format must be 1, 2 or 5", "");
  return o;
}

/* Cuts the box into blocks that differ by at most one cell in each direction. */
static Domain decompose(const Options *o) {
  Domain d = {0};
  int periodic[3] = {1, 1, 1}, coords[3];
  MPI_Comm_size(MPI_COMM_WORLD, &d.processes);
  MPI_Dims_create(d.processes, 3, d.shape);
  MPI_Cart_create(MPI_COMM_WORLD, 3, d.shape, periodic, 0, &d.comm);
  MPI_Comm_rank(d.comm, &d.rank);
  MPI_Cart_coords(d.comm, d.rank, 3, coords);
  d.local_cells = 1;
  for (int axis = 0; axis < 3; axis++) {
    d.cells[axis] = o->grid[axis] > 0 ? o->grid[axis] : (MPI_Offset)o->n * d.shape[axis];
    if (d.cells[axis] < d.shape[axis]) die("--grid has fewer cells than there are processes", "");
    d.first[axis] = d.cells[axis] * coords[axis] / d.shape[axis];
    d.local[axis] = d.cells[axis] * (coords[axis] + 1) / d.shape[axis] - d.first[axis];
    d.local_cells *= d.local[axis];
  }
  for (int f = 0; f < kFields; f++) {
    d.field[f] = malloc((size_t)d.local_cells * sizeof(double));
    if (!d.field[f]) die("not enough memory for the fields; take a smaller --n or --grid", "");
  }
  return d;
}

/* The value of a cell follows from field, step and place alone; no two neighbours are equal. */
static double value_at(const Domain *d, int field, int step, MPI_Offset z, MPI_Offset y, MPI_Offset x) {
  MPI_Offset cell = (z * d->cells[1] + y) * d->cells[2] + x;
  return (field + 1) * 1e3 + step + (double)cell / (double)(d->cells[0] * d->cells[1] * d->cells[2]);
}

static void for_each_cell(const Domain *d, int step, int field, double *values, MPI_Offset *differing) {
  MPI_Offset i = 0;
  for (MPI_Offset z = d->first[0]; z < d->first[0] + d->local[0]; z++)
    for (MPI_Offset y = d->first[1]; y < d->first[1] + d->local[1]; y++)
      for (MPI_Offset x = d->first[2]; x < d->first[2] + d->local[2]; x++, i++) {
        double value = value_at(d, field, step, z, y, x);
        if (differing)
          *differing += values[i] != value;
        else
          values[i] = value;
      }
}

static void compute(const Domain *d, int step, int compute_ms) {
  clock_t until = clock() + (clock_t)(compute_ms * (CLOCKS_PER_SEC / 1000.0));
  for (int f = 0; f < kFields; f++) for_each_cell(d, step, f, d->field[f], NULL);
  volatile double work = 1.0;
  while (clock() < until)
    for (int i = 0; i < 1000; i++) work = sqrt(work + i);
}

static void file_name(const Options *o, int step, char *name, size_t size) {
  if (o->records)
    snprintf(name, size, "%s.nc", o->prefix);
  else
    snprintf(name, size, "%s.%04d.nc", o->prefix, step);
}

static File create_file(const Options *o, const Domain *d, int step) {
  static const char *const axis_names[3] = {"z", "y", "x"};
  char name[4096];
  File file;
  int cmode = NC_CLOBBER | (o->format == 5 ? NC_64BIT_DATA : o->format == 2 ? NC_64BIT_OFFSET : 0);
  int dims[4], *axes = dims + 1;
  file_name(o, step, name, sizeof name);
  check(ncmpi_create(d->comm, name, cmode, MPI_INFO_NULL, &file.ncid));
  if (o->records) check(ncmpi_def_dim(file.ncid, "time", NC_UNLIMITED, &dims[0]));
  for (int axis = 0; axis < 3; axis++) check(ncmpi_def_dim(file.ncid, axis_names[axis], d->cells[axis], &axes[axis]));
  if (o->records) check(ncmpi_def_var(file.ncid, "time", NC_INT, 1, dims, &file.time));
  for (int f = 0; f < kFields; f++)
    check(ncmpi_def_var(file.ncid, kFieldNames[f], NC_DOUBLE, o->records ? 4 : 3, o->records ? dims : axes,
                        &file.variable[f]));
  if (!o->records) check(ncmpi_put_att_int(file.ncid, NC_GLOBAL, "step", NC_INT, 1, &step));
  check(ncmpi_enddef(file.ncid));
  return file;
}

static void write_fields(const Options *o, const Domain *d, const File *file, int step) {
  MPI_Offset start[4] = {step - 1, d->first[0], d->first[1], d->first[2]};
  MPI_Offset count[4] = {1, d->local[0], d->local[1], d->local[2]};
  int skip = o->records ? 0 : 1;
  int requests[kFields], statuses[kFields];
  if (o->records) check(ncmpi_put_var1_int_all(file->ncid, file->time, start, &step));
  for (int f = 0; f < kFields; f++) {
    if (o->nonblocking)
      check(
          ncmpi_iput_vara_double(file->ncid, file->variable[f], start + skip, count + skip, d->field[f], &requests[f]));
    else
      check(ncmpi_put_vara_double_all(file->ncid, file->variable[f], start + skip, count + skip, d->field[f]));
  }
  if (!o->nonblocking) return;
  check(ncmpi_wait_all(file->ncid, kFields, requests, statuses));
  for (int f = 0; f < kFields; f++) check(statuses[f]);
}

/* Returns how many values of this process's block differ from what was written. */
static MPI_Offset verify_step(const Options *o, const Domain *d, int step) {
  MPI_Offset start[4] = {step - 1, d->first[0], d->first[1], d->first[2]};
  MPI_Offset count[4] = {1, d->local[0], d->local[1], d->local[2]};
  MPI_Offset differing = 0;
  char name[4096];
  int ncid, variable, skip = o->records ? 0 : 1;
  file_name(o, step, name, sizeof name);
  check(ncmpi_open(d->comm, name, NC_NOWRITE, MPI_INFO_NULL, &ncid));
  for (int f = 0; f < kFields; f++) {
    check(ncmpi_inq_varid(ncid, kFieldNames[f], &variable));
    check(ncmpi_get_vara_double_all(ncid, variable, start + skip, count + skip, d->field[f]));
    for_each_cell(d, step, f, d->field[f], &differing);
  }
  check(ncmpi_close(ncid));
  return differing;
}

static void verify(const Options *o, const Domain *d) {
  MPI_Offset mine = 0, all = 0;
  for (int step = 1; step <= o->steps; step++) mine += verify_step(o, d, step);
  MPI_Allreduce(&mine, &all, 1, MPI_OFFSET, MPI_SUM, d->comm);
  if (all != 0) die("values read back differ from those written", "");
  if (d->rank == 0) printf("verified %d checkpoints: every value is as it was written\n", o->steps);
}

/* Writes one checkpoint; returns the time of the slowest process, from when all are ready to write. */
static double checkpoint(const Options *o, const Domain *d, File *file, int step) {
  double mine, slowest;
  MPI_Barrier(d->comm);
  mine = MPI_Wtime();
  if (!o->records || step == 1) *file = create_file(o, d, step);
  write_fields(o, d, file, step);
  if (!o->records || step == o->steps) check(ncmpi_close(file->ncid));
  mine = MPI_Wtime() - mine;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, d->comm);
  return slowest;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  Options o = read_options(argc, argv);
  Domain d = decompose(&o);
  File file = {0};
  double bytes = 8.0 * kFields * (double)(d.cells[0] * d.cells[1] * d.cells[2]), io_s = 0;
  if (d.rank == 0)
    printf("%lld x %lld x %lld cells on %d processes (%d x %d x %d), %d checkpoints of %.1f MiB\n",
           (long long)d.cells[2], (long long)d.cells[1], (long long)d.cells[0], d.processes, d.shape[2], d.shape[1],
           d.shape[0], o.steps, bytes / (1 << 20));
  MPI_Barrier(d.comm);
  double began = MPI_Wtime();
  for (int step = 1; step <= o.steps; step++) {
    compute(&d, step, o.compute_ms);
    double seconds = checkpoint(&o, &d, &file, step);
    io_s += seconds;
    if (d.rank == 0) printf("step %4d  checkpoint %6.3f s %7.1f MB/s\n", step, seconds, bytes / seconds / 1e6);
  }
  double run_s = MPI_Wtime() - began;
  if (o.verify) verify(&o, &d);
  if (d.rank == 0)
    printf("result bytes=%.0f checkpoints=%d io_s=%.6f compute_s=%.6f run_s=%.6f\n", bytes * o.steps, o.steps, io_s,
           run_s - io_s, run_s);
  for (int f = 0; f < kFields; f++) free(d.field[f]);
  MPI_Comm_free(&d.comm);
  MPI_Finalize();
  return 0;
}
