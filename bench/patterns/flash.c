/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FLASH-IO's pattern: an astrophysics code whose processes own blocks of an adaptive mesh, in memory with guard cells
 * around each and all unknowns of a cell side by side. A checkpoint has all unknowns as doubles, each a variable of its
 * own [block][z][y][x] into which a process writes one contiguous piece, out of an array of which it takes one number
 * in 24 of the cells inside of the guards: an MPI datatype. A plot file has some unknowns as floats. Both have the
 * mesh.
 *
 * Build:   mpicc -O2 flash.c pattern.c -o flash -lpnetcdf
 * Run:     mpiexec -n 8 ./flash --prefix /tmp/flash --verify
 * Options: --blocks N  of each process (80)   --nxb N  cells of a block in each direction (8)   --guard N  cells (4)
 *          --unknowns N (24)   --plots N  unknowns of a plot file (4)   --steps S  checkpoints and plot files (2)
 *          and those of all patterns: pattern.h
 */
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>

enum { kNeighbours = 15 };

typedef struct {
  MPI_Offset blocks, nxb;
  int guard, unknowns, plots;
  double *cells;        /* [block][z][y][x][unknown], guard cells included */
  MPI_Datatype inside;  /* one unknown of all cells that are no guards */
  int *levels, *family; /* of the mesh: [block], [block][15] */
  double *places;       /* [block][3] */
} Settings;

static void describe_memory(Settings *s) {
  const int n = (int)s->nxb, whole = n + 2 * s->guard;
  const int sizes[5] = {(int)s->blocks, whole, whole, whole, s->unknowns};
  const int inside[5] = {(int)s->blocks, n, n, n, 1}, first[5] = {0, s->guard, s->guard, s->guard, 0};
  MPI_Type_create_subarray(5, sizes, inside, first, MPI_ORDER_C, MPI_DOUBLE, &s->inside);
  MPI_Type_commit(&s->inside);
  s->cells = allocate(s->blocks * whole * whole * whole * s->unknowns, sizeof(double));
}

/* Guard cells hold what no file may ever hold. */
static void fill_cells(const Pattern *p, const Settings *s, int step) {
  const MPI_Offset n = s->nxb, g = s->guard, whole = n + 2 * g;
  double *value = s->cells;
  for (MPI_Offset block = 0; block < s->blocks; block++)
    for (MPI_Offset z = -g; z < n + g; z++)
      for (MPI_Offset y = -g; y < n + g; y++)
        for (MPI_Offset x = -g; x < whole - g; x++) {
          const int guard = z < 0 || y < 0 || x < 0 || z >= n || y >= n || x >= n;
          const MPI_Offset place = (((p->rank * s->blocks + block) * n + z) * n + y) * n + x;
          for (int u = 0; u < s->unknowns; u++) *value++ = guard ? -1 : value_of(u, step, place);
        }
}

static void fill_mesh(const Pattern *p, Settings *s) {
  s->levels = allocate(s->blocks, sizeof(int));
  s->family = allocate(s->blocks * kNeighbours, sizeof(int));
  s->places = allocate(s->blocks * 3, sizeof(double));
  for (MPI_Offset block = 0; block < s->blocks; block++) {
    const int number = (int)(p->rank * s->blocks + block);
    s->levels[block] = 1 + number % 6;
    for (int i = 0; i < kNeighbours; i++) s->family[block * kNeighbours + i] = number + i;
    for (int i = 0; i < 3; i++) s->places[block * 3 + i] = number * 0.5 + i;
  }
}

typedef struct {
  int ncid, levels, family, places, *unknowns;
} File;

static File create(const Pattern *p, const Settings *s, const char *what, int step, int unknowns, nc_type type) {
  File file = {.unknowns = allocate(unknowns, sizeof(int))};
  int block, three, neighbours, axes[4];
  const char *const names[4] = {"block", "z", "y", "x"};
  check(ncmpi_create(MPI_COMM_WORLD, file_name(p, what, step), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file.ncid));
  for (int i = 0; i < 4; i++)
    check(ncmpi_def_dim(file.ncid, names[i], i == 0 ? s->blocks * p->processes : s->nxb, &axes[i]));
  block = axes[0];
  check(ncmpi_def_dim(file.ncid, "axis", 3, &three));
  check(ncmpi_def_dim(file.ncid, "neighbour", kNeighbours, &neighbours));
  const int family[2] = {block, neighbours}, places[2] = {block, three};
  check(ncmpi_def_var(file.ncid, "refinement_level", NC_INT, 1, &block, &file.levels));
  check(ncmpi_def_var(file.ncid, "gid", NC_INT, 2, family, &file.family));
  check(ncmpi_def_var(file.ncid, "coordinates", NC_DOUBLE, 2, places, &file.places));
  for (int u = 0; u < unknowns; u++) {
    char name[32];
    snprintf(name, sizeof name, "unknown_%02d", u);
    check(ncmpi_def_var(file.ncid, name, type, 4, axes, &file.unknowns[u]));
  }
  check(ncmpi_put_att_int(file.ncid, NC_GLOBAL, "step", NC_INT, 1, &step));
  check(ncmpi_enddef(file.ncid));
  return file;
}

static void put_file(const Pattern *p, const Settings *s, const char *what, int step, int unknowns, nc_type type) {
  const MPI_Offset start[4] = {p->rank * s->blocks, 0, 0, 0}, count[4] = {s->blocks, s->nxb, s->nxb, s->nxb};
  const MPI_Offset family[2] = {s->blocks, kNeighbours}, places[2] = {s->blocks, 3};
  File file = create(p, s, what, step, unknowns, type);
  check(ncmpi_put_vara_int_all(file.ncid, file.levels, start, count, s->levels));
  check(ncmpi_put_vara_int_all(file.ncid, file.family, start, family, s->family));
  check(ncmpi_put_vara_double_all(file.ncid, file.places, start, places, s->places));
  for (int u = 0; u < unknowns; u++)
    check(ncmpi_put_vara_all(file.ncid, file.unknowns[u], start, count, s->cells + u, 1, s->inside));
  check(ncmpi_close(file.ncid));
  free(file.unknowns);
}

/* Reads into contiguous memory: not by the way it was written. */
static MPI_Offset differing_in(const Pattern *p, const Settings *s, const char *what, int step, int unknowns) {
  const MPI_Offset start[4] = {p->rank * s->blocks, 0, 0, 0}, count[4] = {s->blocks, s->nxb, s->nxb, s->nxb};
  const MPI_Offset family[2] = {s->blocks, kNeighbours}, cells = s->blocks * s->nxb * s->nxb * s->nxb;
  double *found = allocate(cells, sizeof(double));
  int *mesh = allocate(s->blocks * kNeighbours, sizeof(int));
  MPI_Offset differing = 0;
  int ncid, variable;
  check(ncmpi_open(MPI_COMM_WORLD, file_name(p, what, step), NC_NOWRITE, MPI_INFO_NULL, &ncid));
  check(ncmpi_inq_varid(ncid, "gid", &variable));
  check(ncmpi_get_vara_int_all(ncid, variable, start, family, mesh));
  for (MPI_Offset i = 0; i < s->blocks * kNeighbours; i++) differing += mesh[i] != s->family[i];
  for (int u = 0; u < unknowns; u++) {
    check(ncmpi_get_vara_double_all(ncid, variable + 2 + u, start, count, found));
    for (MPI_Offset i = 0; i < cells; i++) differing += found[i] != value_of(u, step, p->rank * cells + i);
  }
  check(ncmpi_close(ncid));
  free(found);
  free(mesh);
  return differing;
}

/* Of a checkpoint and a plot file. */
static double bytes_of(const Pattern *p, const Settings *s) {
  const double cells = (double)(s->blocks * s->nxb * s->nxb * s->nxb),
               mesh = (double)s->blocks * (4 + 4 * kNeighbours + 24);
  return p->processes * (cells * (8.0 * s->unknowns + 4.0 * s->plots) + 2 * mesh);
}

int main(int argc, char **argv) {
  Pattern p = pattern_begin(&argc, &argv, 2);
  Settings s = {.blocks = number_option(argc, argv, "--blocks", 80),
                .nxb = number_option(argc, argv, "--nxb", 8),
                .guard = number_option(argc, argv, "--guard", 4),
                .unknowns = number_option(argc, argv, "--unknowns", 24),
                .plots = number_option(argc, argv, "--plots", 4)};
  MPI_Offset differing = 0;
  if (s.blocks < 1 || s.nxb < 1 || s.plots > s.unknowns) die("there must be blocks, cells, and unknowns to plot", "");
  describe_memory(&s);
  fill_mesh(&p, &s);
  pattern_ready(&p, argc, argv);
  for (int step = 1; step <= p.steps; step++) {
    fill_cells(&p, &s, step);
    compute(&p);
    begin_io(&p);
    put_file(&p, &s, "checkpoint", step, s.unknowns, NC_DOUBLE);
    put_file(&p, &s, "plot", step, s.plots, NC_FLOAT);
    end_io(&p, &p.written, bytes_of(&p, &s));
  }
  end_run(&p);
  for (int step = 1; p.verify && step <= p.steps; step++)
    differing += differing_in(&p, &s, "checkpoint", step, s.unknowns) + differing_in(&p, &s, "plot", step, s.plots);
  MPI_Type_free(&s.inside);
  free(s.cells);
  free(s.levels);
  free(s.family);
  free(s.places);
  pattern_end(&p, differing);
  return 0;
}
