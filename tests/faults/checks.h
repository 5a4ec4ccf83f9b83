// SPDX-License-Identifier: BSD-3-Clause
// What programs of these tests check, of each rank by itself: the first thing that is wrong ends the program.
#pragma once

#include <mpi.h>
#include <pnetcdf.h>

#include <stdio.h>

static int rank;

static void check(int error, int line) {
  if (error == NC_NOERR) return;
  fprintf(stderr, "rank %d: line %d: %s\n", rank, line, ncmpi_strerror(error));
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check((call), __LINE__)

/// Values of which each tells its place and its seed.
static void fill(double *values, int count, int seed) {
  for (int i = 0; i < count; ++i) values[i] = seed * 1000.0 + i;
}

static void expect(const double *got, int count, int seed, int line) {
  for (int i = 0; i < count; ++i) {
    if (got[i] == seed * 1000.0 + i) continue;
    fprintf(stderr, "rank %d: line %d: element %d is %g, and not %g\n", rank, line, i, got[i], seed * 1000.0 + i);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
