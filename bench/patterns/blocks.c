/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BT-IO's pattern, of the NAS parallel benchmarks: diagonal multi-partitioning. The box is cut into q x q x q cells, q
 * being the square root of the number of processes; each process owns q of them, on a diagonal, so that it has one in
 * each layer. A record of a variable (time, z, y, x, 5) is written every step.
 *
 * Build:   mpicc -O2 blocks.c pattern.c -o blocks -lpnetcdf
 * Run:     mpiexec -n 4 ./blocks --prefix /tmp/btio --verify
 * Options: --n N          points of the box in each direction (64)
 *          --nonblocking  ncmpi_iput_… for each cell, then one ncmpi_wait_all a step, instead of a collective put a
 * cell and those of all patterns: pattern.h
 */
#include "pattern.h"

#include <stdlib.h>

enum { kComponents = 5, kMostCells = 64 };

typedef struct {
  MPI_Offset n;
  int nonblocking, cells; /* of this process */
  MPI_Offset start[kMostCells][5], count[kMostCells][5], elements[kMostCells];
  double *values[kMostCells];
} Settings;

static int square_root(int processes) {
  int root = 1;
  while (root * root < processes) root++;
  if (root * root != processes || root > kMostCells) die("the number of processes must be the square of one", " to 64");
  return root;
}

/* Cell k of a process lies in layer k, and moves by one in both other directions from layer to layer. */
static void decompose(const Pattern *p, Settings *s) {
  const int q = s->cells = square_root(p->processes), row = p->rank / q, column = p->rank % q;
  if (s->n < q) die("--n has fewer points than there are cells", "");
  for (int k = 0; k < q; k++) {
    const int place[3] = {k, (row + k) % q, (column + k) % q};
    s->elements[k] = kComponents;
    for (int axis = 0; axis < 3; axis++) {
      s->start[k][axis + 1] = s->n * place[axis] / q;
      s->count[k][axis + 1] = s->n * (place[axis] + 1) / q - s->start[k][axis + 1];
      s->elements[k] *= s->count[k][axis + 1];
    }
    s->start[k][4] = 0;
    s->count[k][0] = 1;
    s->count[k][4] = kComponents;
    s->values[k] = allocate(s->elements[k], sizeof(double));
  }
}

/* Fills a cell, or counts what is not as it would be filled. The components of a point are its neighbours in x. */
static MPI_Offset walk_cell(const Settings *s, int k, int step, int compare) {
  const MPI_Offset *start = s->start[k], *count = s->count[k];
  const MPI_Offset all[3] = {s->n, s->n, s->n * kComponents};
  const MPI_Offset first[3] = {start[1], start[2], start[3] * kComponents};
  const MPI_Offset cells[3] = {count[1], count[2], count[3] * kComponents};
  return walk(s->values[k], 0, step, all, first, cells, compare);
}

static int create(const Pattern *p, const Settings *s, int *variable) {
  static const char *const names[5] = {"time", "z", "y", "x", "component"};
  MPI_Offset lengths[5] = {NC_UNLIMITED, s->n, s->n, s->n, kComponents};
  int ncid, dims[5];
  check(ncmpi_create(MPI_COMM_WORLD, file_name(p, "btio", 0), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  for (int i = 0; i < 5; i++) check(ncmpi_def_dim(ncid, names[i], lengths[i], &dims[i]));
  check(ncmpi_def_var(ncid, "u", NC_DOUBLE, 5, dims, variable));
  check(ncmpi_enddef(ncid));
  return ncid;
}

static void put_cells(Settings *s, int ncid, int variable, int step) {
  int requests[kMostCells], statuses[kMostCells];
  for (int k = 0; k < s->cells; k++) {
    s->start[k][0] = step - 1;
    if (s->nonblocking)
      check(ncmpi_iput_vara_double(ncid, variable, s->start[k], s->count[k], s->values[k], &requests[k]));
    else
      check(ncmpi_put_vara_double_all(ncid, variable, s->start[k], s->count[k], s->values[k]));
  }
  if (!s->nonblocking) return;
  check(ncmpi_wait_all(ncid, s->cells, requests, statuses));
  for (int k = 0; k < s->cells; k++) check(statuses[k]);
}

static MPI_Offset differing_in_all(const Pattern *p, Settings *s) {
  MPI_Offset differing = 0;
  int ncid, variable;
  check(ncmpi_open(MPI_COMM_WORLD, file_name(p, "btio", 0), NC_NOWRITE, MPI_INFO_NULL, &ncid));
  check(ncmpi_inq_varid(ncid, "u", &variable));
  for (int step = 1; step <= p->steps; step++)
    for (int k = 0; k < s->cells; k++) {
      s->start[k][0] = step - 1;
      check(ncmpi_get_vara_double_all(ncid, variable, s->start[k], s->count[k], s->values[k]));
      differing += walk_cell(s, k, step, 1);
    }
  check(ncmpi_close(ncid));
  return differing;
}

int main(int argc, char **argv) {
  Pattern p = pattern_begin(&argc, &argv, 8);
  Settings s = {.n = number_option(argc, argv, "--n", 64), .nonblocking = flag_option(argc, argv, "--nonblocking")};
  MPI_Offset differing = 0;
  int ncid = -1, variable = -1;
  decompose(&p, &s);
  pattern_ready(&p, argc, argv);
  for (int step = 1; step <= p.steps; step++) {
    for (int k = 0; k < s.cells; k++) walk_cell(&s, k, step, 0);
    compute(&p);
    begin_io(&p);
    if (step == 1) ncid = create(&p, &s, &variable);
    put_cells(&s, ncid, variable, step);
    if (step == p.steps) check(ncmpi_close(ncid));
    end_io(&p, &p.written, 8.0 * kComponents * (double)(s.n * s.n * s.n));
  }
  end_run(&p);
  if (p.verify) differing = differing_in_all(&p, &s);
  for (int k = 0; k < s.cells; k++) free(s.values[k]);
  pattern_end(&p, differing);
  return 0;
}
