/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IOR's pattern: one file, in which each process writes a part of its own, from its beginning to its end, a transfer at
 * a time.
 *
 * Build:   mpicc -O2 contiguous.c pattern.c -o contiguous -lpnetcdf
 * Run:     mpiexec -n 8 ./contiguous --prefix /tmp/ior --verify
 * Options: --transfers N  of each process (32)    --transfer K   KiB of each (1024)
 *          --independent  in independent mode     and those of all patterns: pattern.h
 */
#include "pattern.h"

#include <stdlib.h>

typedef struct {
  MPI_Offset transfers, transfer_bytes;
  int independent;
  signed char *data; /* of one transfer */
} Settings;

/* All transfers are of the same data but for their first bytes, so that generating them takes no time. */
static void mark(const Settings *s, MPI_Offset transfer) {
  for (int i = 0; i < 4; i++) s->data[i] = (signed char)(transfer >> (8 * i));
}

static MPI_Offset put_transfers(const Pattern *p, const Settings *s, int step) {
  int ncid, dims[2], variable;
  check(ncmpi_create(MPI_COMM_WORLD, file_name(p, "ior", step), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  check(ncmpi_def_dim(ncid, "transfer", s->transfers * p->processes, &dims[0]));
  check(ncmpi_def_dim(ncid, "byte", s->transfer_bytes, &dims[1]));
  check(ncmpi_def_var(ncid, "data", NC_BYTE, 2, dims, &variable));
  check(ncmpi_enddef(ncid));
  if (s->independent) check(ncmpi_begin_indep_data(ncid));
  for (MPI_Offset i = 0; i < s->transfers; i++) {
    MPI_Offset start[2] = {p->rank * s->transfers + i, 0}, count[2] = {1, s->transfer_bytes};
    mark(s, start[0] + step);
    if (s->independent)
      check(ncmpi_put_vara_schar(ncid, variable, start, count, s->data));
    else
      check(ncmpi_put_vara_schar_all(ncid, variable, start, count, s->data));
  }
  if (s->independent) check(ncmpi_end_indep_data(ncid));
  check(ncmpi_close(ncid));
  return s->transfers * s->transfer_bytes * p->processes;
}

static MPI_Offset differing_in(const Pattern *p, const Settings *s, int step) {
  signed char *found = allocate(s->transfer_bytes, 1);
  MPI_Offset differing = 0;
  int ncid, variable;
  check(ncmpi_open(MPI_COMM_WORLD, file_name(p, "ior", step), NC_NOWRITE, MPI_INFO_NULL, &ncid));
  check(ncmpi_inq_varid(ncid, "data", &variable));
  for (MPI_Offset i = 0; i < s->transfers; i++) {
    MPI_Offset start[2] = {p->rank * s->transfers + i, 0}, count[2] = {1, s->transfer_bytes};
    check(ncmpi_get_vara_schar_all(ncid, variable, start, count, found));
    mark(s, start[0] + step);
    for (MPI_Offset b = 0; b < s->transfer_bytes; b++) differing += found[b] != s->data[b];
  }
  check(ncmpi_close(ncid));
  free(found);
  return differing;
}

int main(int argc, char **argv) {
  Pattern p = pattern_begin(&argc, &argv, 1);
  Settings s = {.transfers = number_option(argc, argv, "--transfers", 32),
                .transfer_bytes = 1024 * (MPI_Offset)number_option(argc, argv, "--transfer", 1024),
                .independent = flag_option(argc, argv, "--independent")};
  MPI_Offset differing = 0;
  if (s.transfers < 1 || s.transfer_bytes < 1) die("--transfers and --transfer must be positive", "");
  s.data = allocate(s.transfer_bytes, 1);
  for (MPI_Offset i = 0; i < s.transfer_bytes; i++) s.data[i] = (signed char)(i * 31 + p.rank);
  pattern_ready(&p, argc, argv);
  for (int step = 1; step <= p.steps; step++) {
    compute(&p);
    begin_io(&p);
    MPI_Offset bytes = put_transfers(&p, &s, step);
    end_io(&p, &p.written, (double)bytes);
  }
  end_run(&p);
  for (int step = 1; p.verify && step <= p.steps; step++) differing += differing_in(&p, &s, step);
  free(s.data);
  pattern_end(&p, differing);
  return 0;
}
