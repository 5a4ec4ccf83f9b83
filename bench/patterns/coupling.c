/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs that are coupled by a file: eight processes write an array that they have in blocks, 2 x 2 x 2; then the
 * first half of them read it in slabs. What is timed, is both.
 *
 * Build:   mpicc -O2 coupling.c pattern.c -o coupling -lpnetcdf
 * Run:     mpiexec -n 8 ./coupling --prefix /dev/shm/coupling --verify
 * Options: --n N  cells per process and direction (128)   --steps S  arrays, one after the other (2)
 *          and those of all patterns: pattern.h
 */
#include "pattern.h"

#include <stdlib.h>

enum { kWriters = 8, kReaders = 4 };

typedef struct {
  MPI_Offset all[3];
  MPI_Offset block_start[3], block_count[3], slab_start[3], slab_count[3];
  double *block, *slab;
} Settings;

static MPI_Offset cells_of(const MPI_Offset count[3]) { return count[0] * count[1] * count[2]; }

static void decompose(const Pattern *p, Settings *s, MPI_Offset n) {
  int rest = p->rank;
  for (int axis = 2; axis >= 0; axis--) {
    s->all[axis] = 2 * n;
    s->block_start[axis] = rest % 2 * n;
    s->block_count[axis] = n;
    s->slab_start[axis] = 0;
    s->slab_count[axis] = 2 * n;
    rest /= 2;
  }
  s->slab_count[0] = 2 * n / kReaders;
  s->slab_start[0] = p->rank * s->slab_count[0];
  s->block = allocate(cells_of(s->block_count), sizeof(double));
  s->slab = p->rank < kReaders ? allocate(cells_of(s->slab_count), sizeof(double)) : NULL;
}

static void put_array(const Pattern *p, const Settings *s, int step) {
  static const char *const names[3] = {"z", "y", "x"};
  int ncid, dims[3], variable;
  check(ncmpi_create(MPI_COMM_WORLD, file_name(p, "coupling", step), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  for (int axis = 0; axis < 3; axis++) check(ncmpi_def_dim(ncid, names[axis], s->all[axis], &dims[axis]));
  check(ncmpi_def_var(ncid, "x", NC_DOUBLE, 3, dims, &variable));
  check(ncmpi_enddef(ncid));
  check(ncmpi_put_vara_double_all(ncid, variable, s->block_start, s->block_count, s->block));
  check(ncmpi_close(ncid));
}

static void get_array(const Pattern *p, const Settings *s, MPI_Comm readers, int step) {
  int ncid, variable;
  check(ncmpi_open(readers, file_name(p, "coupling", step), NC_NOWRITE, MPI_INFO_NULL, &ncid));
  check(ncmpi_inq_varid(ncid, "x", &variable));
  check(ncmpi_get_vara_double_all(ncid, variable, s->slab_start, s->slab_count, s->slab));
  check(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  Pattern p = pattern_begin(&argc, &argv, 2);
  Settings s;
  const int n = number_option(argc, argv, "--n", 128);
  MPI_Offset differing = 0;
  MPI_Comm readers;
  if (n < 2 || n % 2 != 0) die("--n must be even", "");
  if (p.processes != kWriters) die("it needs 8 processes", "");
  MPI_Comm_split(MPI_COMM_WORLD, p.rank < kReaders ? 0 : MPI_UNDEFINED, p.rank, &readers);
  decompose(&p, &s, n);
  pattern_ready(&p, argc, argv);
  for (int step = 1; step <= p.steps; step++) {
    walk(s.block, 0, step, s.all, s.block_start, s.block_count, 0);
    begin_io(&p);
    put_array(&p, &s, step);
    if (readers != MPI_COMM_NULL) get_array(&p, &s, readers, step);
    end_io(&p, &p.written, 8.0 * (double)cells_of(s.all));
    if (p.verify && readers != MPI_COMM_NULL) differing += walk(s.slab, 0, step, s.all, s.slab_start, s.slab_count, 1);
  }
  end_run(&p);
  if (readers != MPI_COMM_NULL) MPI_Comm_free(&readers);
  free(s.block);
  free(s.slab);
  pattern_end(&p, differing);
  return 0;
}
