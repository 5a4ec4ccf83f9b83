/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the access patterns share: options, errors, the clock, values that follow from their place, and the last line
 * that they print. They use PnetCDF and MPI as any program does.
 */
#ifndef NESSIE_BENCH_PATTERN_H
#define NESSIE_BENCH_PATTERN_H

#include <mpi.h>
#include <pnetcdf.h>

/* How much, and in which time of the slowest process. */
typedef struct {
  double bytes, s;
} Moved;

typedef struct {
  int rank, processes;
  const char *prefix;            /* files are "<prefix>.….nc" */
  int steps, compute_ms, verify; /* --steps, --compute-ms: CPU time spent before each output; --verify */
  double began, io_began;
  Moved written, read; /* so far */
  double run_s;
  double longest_s; /* of a call, where that is of interest */
} Pattern;

/* Begins MPI. `steps`: where the arguments do not say. Takes the options of all patterns. */
Pattern pattern_begin(int *argc, char ***argv, int steps);
/* An option of one pattern's own: "--name N", or `otherwise`; and "--name". Call them before pattern_ready(). */
int number_option(int argc, char **argv, const char *name, int otherwise);
int flag_option(int argc, char **argv, const char *name);
/* Ends the program if there is an argument that nobody has asked for; starts the clock of the run. */
void pattern_ready(Pattern *p, int argc, char **argv);

/* Around what is timed: from when all processes are ready to when the slowest is done. */
void begin_io(Pattern *p);
void end_io(Pattern *p, Moved *moved, double bytes);
void compute(const Pattern *p);
/* The run is over; what follows (reading back, to verify) does not count. */
void end_run(Pattern *p);
/* How many values this process found to be others than they must be: ends the program if any did. Prints the result. */
void pattern_end(Pattern *p, MPI_Offset differing);

void die(const char *message, const char *detail);
void check(int status);
void *allocate(MPI_Offset count, MPI_Offset size);
/* "<prefix>.<what>.<number>.nc"; valid until the next call. */
const char *file_name(const Pattern *p, const char *what, int number);
/* A value that a float holds exactly, and that differs from its neighbours'. */
double value_of(int variable, int step, MPI_Offset place);
/* Fills a block of a box of `all` cells, the last axis the fastest, with the values of their places; or counts those
 * that are others. */
MPI_Offset walk(double *values, int variable, int step, const MPI_Offset all[3], const MPI_Offset start[3],
                const MPI_Offset count[3], int compare);
/* A number that looks random, and follows from the last one. */
unsigned next_random(unsigned *state);

#endif
