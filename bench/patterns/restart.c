/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checkpoint and restart: every process owns a block of some fields of a box that is decomposed in x, y and z. All
 * checkpoints are written; then each is opened, and every process reads its block back.
 *
 * Build:   mpicc -O2 restart.c pattern.c -o restart -lpnetcdf
 * Run:     mpiexec -n 8 ./restart --prefix /tmp/restart --verify
 * Options: --n N  cells per process and direction (64)   --fields N (4)   --steps S  checkpoints (2)
 *          --write-only, --read-only  the one now, the other in another run
 *          and those of all patterns: pattern.h
 */
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
  int fields;
  MPI_Offset all[3], start[3], count[3], cells; /* z, y, x */
  double *values;                               /* [field][cell], of this process */
} Settings;

static void decompose(const Pattern *p, Settings *s, MPI_Offset n) {
  int shape[3] = {0, 0, 0}, rest = p->rank;
  MPI_Dims_create(p->processes, 3, shape);
  for (int axis = 2; axis >= 0; axis--) {
    s->start[axis] = rest % shape[axis] * n;
    s->count[axis] = n;
    s->all[axis] = shape[axis] * n;
    rest /= shape[axis];
  }
  s->cells = n * n * n;
  s->values = allocate(s->cells * s->fields, sizeof(double));
}

/* Fills all fields, or counts what is not as it would be filled. */
static MPI_Offset walk_fields(const Settings *s, int step, int compare) {
  MPI_Offset differing = 0;
  for (int field = 0; field < s->fields; field++)
    differing += walk(s->values + field * s->cells, field, step, s->all, s->start, s->count, compare);
  return differing;
}

static void put_checkpoint(const Pattern *p, const Settings *s, int step) {
  static const char *const names[3] = {"z", "y", "x"};
  int ncid, dims[3], first = -1, variable;
  check(ncmpi_create(MPI_COMM_WORLD, file_name(p, "restart", step), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  for (int axis = 0; axis < 3; axis++) check(ncmpi_def_dim(ncid, names[axis], s->all[axis], &dims[axis]));
  for (int field = 0; field < s->fields; field++) {
    char name[32];
    snprintf(name, sizeof name, "field_%d", field);
    check(ncmpi_def_var(ncid, name, NC_DOUBLE, 3, dims, &variable));
    if (field == 0) first = variable;
  }
  check(ncmpi_enddef(ncid));
  for (int field = 0; field < s->fields; field++)
    check(ncmpi_put_vara_double_all(ncid, first + field, s->start, s->count, s->values + field * s->cells));
  check(ncmpi_close(ncid));
}

static void get_checkpoint(const Pattern *p, const Settings *s, int step) {
  int ncid, first;
  check(ncmpi_open(MPI_COMM_WORLD, file_name(p, "restart", step), NC_NOWRITE, MPI_INFO_NULL, &ncid));
  check(ncmpi_inq_varid(ncid, "field_0", &first));
  for (int field = 0; field < s->fields; field++)
    check(ncmpi_get_vara_double_all(ncid, first + field, s->start, s->count, s->values + field * s->cells));
  check(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  Pattern p = pattern_begin(&argc, &argv, 2);
  Settings s = {.fields = number_option(argc, argv, "--fields", 4)};
  const int n = number_option(argc, argv, "--n", 64);
  const int write_only = flag_option(argc, argv, "--write-only"), read_only = flag_option(argc, argv, "--read-only");
  MPI_Offset differing = 0;
  if (n < 1 || s.fields < 1) die("--n and --fields must be positive", "");
  decompose(&p, &s, n);
  pattern_ready(&p, argc, argv);
  const double bytes = 8.0 * s.fields * (double)(s.all[0] * s.all[1] * s.all[2]);
  for (int step = 1; !read_only && step <= p.steps; step++) {
    walk_fields(&s, step, 0);
    compute(&p);
    begin_io(&p);
    put_checkpoint(&p, &s, step);
    end_io(&p, &p.written, bytes);
  }
  for (int step = 1; !write_only && step <= p.steps; step++) {
    begin_io(&p);
    get_checkpoint(&p, &s, step);
    end_io(&p, &p.read, bytes);
    if (p.verify) differing += walk_fields(&s, step, 1);
  }
  end_run(&p);
  free(s.values);
  pattern_end(&p, differing);
  return 0;
}
