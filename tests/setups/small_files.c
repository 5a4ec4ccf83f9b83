/* SPDX-License-Identifier: BSD-3-Clause */
/* small_files [N]: a program that makes one small file after the other, reads each third one back, appends to each
 * fifth, removes each seventh, and makes a large one in the middle. Prints how many calls failed, or read what was not
 * written. Which of them are staged is not the program's to see. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

enum { kElements = 8, kLarge = 1 << 18 };

static int rank, processes, wrong;

static void check(int error, const char *what) {
  if (error == NC_NOERR) return;
  fprintf(stderr, "%s: %s\n", what, ncmpi_strerror(error));
  ++wrong;
}

static double value(int file, int record, MPI_Offset element) {
  return file * 1000.0 + record * 100.0 + (double)element;
}

static void put(int ncid, int varid, int file, int record, MPI_Offset elements) {
  MPI_Offset start[] = {record, rank * elements}, count[] = {1, elements};
  double *values = malloc((size_t)elements * sizeof *values);
  for (MPI_Offset i = 0; i < elements; ++i) values[i] = value(file, record, start[1] + i);
  check(ncmpi_put_vara_double_all(ncid, varid, start, count, values), "put");
  free(values);
}

static void make(const char *name, int file, MPI_Offset elements) {
  int ncid = -1, dims[2], varid = -1;
  check(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid), "create");
  check(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]), "def_dim");
  check(ncmpi_def_dim(ncid, "x", elements * processes, &dims[1]), "def_dim");
  check(ncmpi_def_var(ncid, "v", NC_DOUBLE, 2, dims, &varid), "def_var");
  check(ncmpi_put_att_int(ncid, varid, "file", NC_INT, 1, &file), "put_att");
  check(ncmpi_enddef(ncid), "enddef");
  put(ncid, varid, file, 0, elements);
  check(ncmpi_close(ncid), "close");
}

static void append(const char *name, int file) {
  int ncid = -1;
  check(ncmpi_open(MPI_COMM_WORLD, name, NC_WRITE, MPI_INFO_NULL, &ncid), "open to append");
  put(ncid, 0, file, 1, kElements);
  check(ncmpi_close(ncid), "close");
}

static void read_back(const char *name, int file) {
  int ncid = -1;
  double values[kElements] = {0};
  const MPI_Offset start[] = {0, ((rank + 1) % processes) * kElements}, count[] = {1, kElements};
  check(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &ncid), "open to read");
  check(ncmpi_get_vara_double_all(ncid, 0, start, count, values), "get");
  for (int i = 0; i < kElements; ++i) wrong += values[i] != value(file, 0, start[1] + i);
  check(ncmpi_close(ncid), "close");
}

int main(int argc, char **argv) {
  const int files = argc > 1 ? atoi(argv[1]) : 60;
  char name[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  for (int file = 0; file < files; ++file) {
    snprintf(name, sizeof name, "small.%d.nc", file % (files - 5)); /* the last ones are made once more */
    make(name, file, file == files / 2 ? kLarge : kElements);
    if (file % 3 == 0 && file != files / 2) read_back(name, file);
    if (file % 5 == 0 && file != files / 2) append(name, file);
    if (file % 7 == 0 && rank == 0) check(ncmpi_delete(name, MPI_INFO_NULL), "delete");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d wrong\n", wrong);
  MPI_Finalize();
  return wrong != 0;
}
