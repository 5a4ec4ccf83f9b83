/* SPDX-License-Identifier: BSD-3-Clause */
/* The inner half of a ring in which something diffuses outwards; edge.f90 has the outer half, with as many ranks as it
 * likes. In each step both say what they have at the border that they share, and hear it of the other. coupler.py says
 * how they are run. */
#include <mpi.h>
#include <nessie/streams.h>

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 5, ANGLES = 24, RADII = 16, TIME_MS = 60000 };
static double u[ANGLES][RADII]; /* of this rank: `count` angles */

static void demand(int code) {
  if (code == NESSIE_OK) return;
  fprintf(stderr, "core: %s: %s\n", nessie_code_name(code), nessie_stream_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void begin(nessie_stream *stream) {
  int32_t state;
  demand(nessie_stream_begin_step(stream, TIME_MS, &state));
  if (state == NESSIE_STREAM_STEP_OK) return;
  fprintf(stderr, "core: the other side is not there\n");
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What lies beyond this side's border, after both have said it. */
static void exchange(nessie_stream *out, nessie_stream *in, int64_t start, int64_t count, double *beyond) {
  double mine[ANGLES];
  for (int i = 0; i < count; ++i) mine[i] = u[i][RADII - 1];
  begin(out);
  demand(nessie_stream_put(out, "border", 1, &start, &count, mine));
  demand(nessie_stream_end_step(out, TIME_MS));
  begin(in);
  demand(nessie_stream_get(in, "border", 1, &start, &count, beyond, (uint64_t)count * sizeof(double), TIME_MS));
  demand(nessie_stream_end_step(in, 0));
}

static void diffuse(double *ring, double beyond) {
  double before = ring[0]; /* nothing comes from the centre */
  for (int r = 0; r < RADII; ++r) {
    const double here = ring[r], after = r + 1 < RADII ? ring[r + 1] : beyond;
    ring[r] = here + 0.25 * (before - 2 * here + after);
    before = here;
  }
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int64_t all = ANGLES, start = ANGLES * rank / size, count = ANGLES * (rank + 1) / size - start;
  const nessie_stream_variable border = {.name = "border", .type = NESSIE_STREAM_DOUBLE, .ndims = 1, .shape = &all};
  const nessie_stream_options when_all_are_there = {.await_readers = 2}, together = {.group = 1};
  nessie_stream *out = NULL, *in = NULL;
  demand(nessie_stream_open("core", NESSIE_STREAM_WRITE, rank, size, &when_all_are_there, TIME_MS, &out));
  demand(nessie_stream_define(out, &border));
  demand(nessie_stream_open("edge", NESSIE_STREAM_READ, rank, size, &together, TIME_MS, &in));

  for (int i = 0; i < count; ++i)
    for (int r = 0; r < RADII; ++r) u[i][r] = 1 + (double)(start + i) / ANGLES;
  double beyond[ANGLES], mine = 0, sum = 0;
  for (int step = 0; step < STEPS; ++step) {
    exchange(out, in, start, count, beyond);
    for (int i = 0; i < count; ++i) diffuse(u[i], beyond[i]);
  }
  demand(nessie_stream_close(out, TIME_MS));
  demand(nessie_stream_close(in, TIME_MS));

  for (int i = 0; i < count; ++i)
    for (int r = 0; r < RADII; ++r) mine += u[i][r];
  MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("core has %.3f\n", sum);
  return MPI_Finalize();
}
