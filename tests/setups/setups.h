/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of these tests share. */
#ifndef NESSIE_TESTS_SETUPS_H
#define NESSIE_TESTS_SETUPS_H

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

/* Ends the job with 3 if native PnetCDF's code is an error. */
#define CHECK(call)                                                             \
  do {                                                                          \
    int e_ = (call);                                                            \
    if (e_ != NC_NOERR) {                                                       \
      fprintf(stderr, "%d: line %d: %s\n", rank, __LINE__, ncmpi_strerror(e_)); \
      MPI_Abort(MPI_COMM_WORLD, 3);                                             \
    }                                                                           \
  } while (0)

static inline void begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Rank 0 says it when all ranks have come here. The arguments are evaluated on rank 0 only. */
#define SAY(...)                 \
  do {                           \
    MPI_Barrier(MPI_COMM_WORLD); \
    if (rank == 0) {             \
      printf(__VA_ARGS__);       \
      fflush(stdout);            \
    }                            \
  } while (0)

/* Rank 0 says what a call gave each of the at most sixteen ranks. */
static inline void say_codes(const char *what, int code) {
  int codes[16];
  MPI_Gather(&code, 1, MPI_INT, codes, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  printf("%s:", what);
  for (int i = 0; i < size; i++) printf(" %s", ncmpi_strerrno(codes[i]));
  printf("\n");
  fflush(stdout);
}

#endif
