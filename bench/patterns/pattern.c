/* SPDX-License-Identifier: BSD-3-Clause */
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMostArguments = 64 };
static char used[kMostArguments]; /* which arguments somebody has asked for */

void die(const char *message, const char *detail) {
  fprintf(stderr, "%s%s\n", message, detail);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void check(int status) {
  if (status != NC_NOERR) die("PnetCDF: ", ncmpi_strerror(status));
}

void *allocate(MPI_Offset count, MPI_Offset size) {
  void *memory = malloc((size_t)(count > 0 ? count * size : 1));
  if (!memory) die("not enough memory", "");
  return memory;
}

static int find(int argc, char **argv, const char *name) {
  for (int i = 1; i < argc && i < kMostArguments; i++) {
    if (strcmp(argv[i], name) != 0) continue;
    used[i] = 1;
    return i;
  }
  return 0;
}

static const char *text_option(int argc, char **argv, const char *name, const char *otherwise) {
  int i = find(argc, argv, name);
  if (i == 0) return otherwise;
  if (i + 1 >= argc || i + 1 >= kMostArguments) die("needs a value: ", name);
  used[i + 1] = 1;
  return argv[i + 1];
}

int number_option(int argc, char **argv, const char *name, int otherwise) {
  const char *value = text_option(argc, argv, name, NULL);
  char *end = NULL;
  long parsed = value ? strtol(value, &end, 10) : otherwise;
  if (value && (*value == '\0' || *end != '\0' || parsed < 0 || parsed > 1 << 24)) die("needs a number: ", name);
  return (int)parsed;
}

int flag_option(int argc, char **argv, const char *name) { return find(argc, argv, name) != 0; }

Pattern pattern_begin(int *argc, char ***argv, int steps) {
  Pattern p = {0};
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &p.processes);
  p.prefix = text_option(*argc, *argv, "--prefix", "pattern");
  p.steps = number_option(*argc, *argv, "--steps", steps);
  p.compute_ms = number_option(*argc, *argv, "--compute-ms", 0);
  p.verify = flag_option(*argc, *argv, "--verify");
  if (p.steps < 1) die("must be positive: ", "--steps");
  return p;
}

void pattern_ready(Pattern *p, int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (i >= kMostArguments || !used[i]) die("cannot use this argument, see the head of the source: ", argv[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  p->began = MPI_Wtime();
}

static double slowest_since(double began) {
  double mine = MPI_Wtime() - began, slowest;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

void begin_io(Pattern *p) {
  MPI_Barrier(MPI_COMM_WORLD);
  p->io_began = MPI_Wtime();
}

void end_io(Pattern *p, Moved *moved, double bytes) {
  moved->s += slowest_since(p->io_began);
  moved->bytes += bytes;
}

/* As much work however many share the processor: CPU time, not time. */
void compute(const Pattern *p) {
  clock_t until = clock() + (clock_t)(p->compute_ms * (CLOCKS_PER_SEC / 1000.0));
  volatile double work = 1.0;
  while (clock() < until)
    for (int i = 0; i < 1000; i++) work = work * 1.000001 + i;
}

void end_run(Pattern *p) { p->run_s = slowest_since(p->began); }

void pattern_end(Pattern *p, MPI_Offset differing) {
  MPI_Offset all = 0;
  MPI_Allreduce(&differing, &all, 1, MPI_OFFSET, MPI_SUM, MPI_COMM_WORLD);
  if (all != 0) die("values read back differ from those written", "");
  if (p->rank == 0 && p->verify) printf("verified: every value is as it must be\n");
  if (p->rank == 0)
    printf("result bytes=%.0f io_s=%.6f run_s=%.6f read_bytes=%.0f read_s=%.6f wait_s=%.6f\n", p->written.bytes,
           p->written.s, p->run_s, p->read.bytes, p->read.s, p->longest_s);
  fflush(stdout);
  MPI_Finalize();
}

const char *file_name(const Pattern *p, const char *what, int number) {
  static char name[4096];
  snprintf(name, sizeof name, "%s.%s.%04d.nc", p->prefix, what, number);
  return name;
}

double value_of(int variable, int step, MPI_Offset place) {
  return (double)((place * 7 + variable * 131 + step * 1031) % 1000003);
}

MPI_Offset walk(double *values, int variable, int step, const MPI_Offset all[3], const MPI_Offset start[3],
                const MPI_Offset count[3], int compare) {
  MPI_Offset differing = 0;
  for (MPI_Offset z = start[0]; z < start[0] + count[0]; z++)
    for (MPI_Offset y = start[1]; y < start[1] + count[1]; y++)
      for (MPI_Offset x = start[2]; x < start[2] + count[2]; x++, values++) {
        const double right = value_of(variable, step, (z * all[1] + y) * all[2] + x);
        if (compare)
          differing += *values != right;
        else
          *values = right;
      }
  return differing;
}

unsigned next_random(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}
