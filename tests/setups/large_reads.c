/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a file of one 24 MiB variable: large_reads FILE runs|columns|mixed|wrong. A rank reads its rows, or its
 * columns; mixed: rank 0 its rows, the others columns; wrong: rank 0 behind the end. FILE is made if it does not exist.
 */
#include "setups.h"

#include <string.h>
#include <unistd.h>

enum { kRows = 1024, kColumns = 3072 };

static double value(MPI_Offset row, MPI_Offset column) { return (double)(row * kColumns + column); }

static void make(const char *name) {
  int ncid, dims[2], varid;
  const MPI_Offset start[] = {rank * (kRows / size), 0}, count[] = {kRows / size, kColumns};
  double *values = malloc((size_t)(count[0] * count[1]) * sizeof *values);
  for (MPI_Offset i = 0; i < count[0] * count[1]; ++i) values[i] = value(start[0] + i / kColumns, i % kColumns);
  CHECK(ncmpi_create(MPI_COMM_WORLD, name, NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "y", kRows, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", kColumns, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "v", NC_DOUBLE, 2, dims, &varid));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_vara_double_all(ncid, varid, start, count, values));
  CHECK(ncmpi_close(ncid));
  free(values);
}

static void read_part(int ncid, const char *how) {
  MPI_Offset start[] = {0, 0}, count[] = {kRows, kColumns}, got = 0;
  const int axis = strcmp(how, "columns") == 0 || (strcmp(how, "mixed") == 0 && rank > 0) ? 1 : 0;
  count[axis] /= size;
  start[axis] = rank * count[axis];
  double *values = malloc((size_t)(count[0] * count[1]) * sizeof *values);
  int wrong = 0;
  if (strcmp(how, "wrong") == 0 && rank == 0) start[0] = kRows;
  const int code = ncmpi_get_vara_double_all(ncid, 0, start, count, values);
  for (MPI_Offset i = 0; code == NC_NOERR && i < count[0] * count[1]; ++i)
    wrong += values[i] != value(start[0] + i / count[1], start[1] + i % count[1]);
  say_codes("get", code);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(ncmpi_inq_get_size(ncid, &got));
  SAY("%d wrong, %s\n", wrong, got >= count[0] * count[1] * 8 || code != NC_NOERR ? "counted" : "not counted");
  free(values);
}

int main(int argc, char **argv) {
  int ncid;
  begin(&argc, &argv);
  const int exists = access(argv[1], F_OK) == 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (!exists) make(argv[1]);
  CHECK(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &ncid));
  read_part(ncid, argv[2]);
  read_part(ncid, "columns");
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
