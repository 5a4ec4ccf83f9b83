/* SPDX-License-Identifier: BSD-3-Clause */
/* What each way to open a file by its name answers. Arguments: names; none: no communicator. */
#include "setups.h"

#include <string.h>
#include <unistd.h>

static int write_and_close(int ncid) {
  int dim, var;
  const MPI_Offset start = 4 * rank, count = 4;
  int data[4] = {rank, rank + 1, rank + 2, rank + 3}, error;
  if ((error = ncmpi_def_dim(ncid, "x", 4 * size, &dim))) return error;
  if ((error = ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var))) return error;
  if ((error = ncmpi_enddef(ncid))) return error;
  if ((error = ncmpi_put_vara_int_all(ncid, var, &start, &count, data))) return error;
  return ncmpi_close(ncid);
}

static int read_and_close(int ncid) {
  int back[4] = {-1, -1, -1, -1}, length = 0, error;
  const MPI_Offset start[] = {4 * ((rank + 1) % size), 0}, count[] = {4, 0}; /* another program's variable has two */
  char path[4096] = "";
  ncmpi_inq_path(ncid, &length, path);
  error = ncmpi_get_vara_int_all(ncid, 0, start, count, back);
  SAY("  %d bytes of name, ends in '%s'; read %d\n", length, strlen(path) > 3 ? path + strlen(path) - 3 : path,
      back[3]);
  return error ? error : ncmpi_close(ncid);
}

static void try_open(const char *what, const char *name, int mode) {
  int ncid = -1, error = ncmpi_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &ncid);
  SAY("  %s: %s\n", what, ncmpi_strerrno(error));
  if (error != NC_NOERR) return;
  error = read_and_close(ncid);
  SAY("  read: %s\n", ncmpi_strerrno(error));
}

static void try_create(const char *what, const char *name, int mode) {
  int ncid = -1, error = ncmpi_create(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &ncid);
  SAY("  %s: %s\n", what, ncmpi_strerrno(error));
  if (error != NC_NOERR) return;
  error = write_and_close(ncid);
  SAY("  written: %s\n", ncmpi_strerrno(error));
}

static void try_abort(const char *name) {
  int ncid = -1, error = ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &ncid);
  if (error != NC_NOERR) return;
  (void)ncmpi_abort(ncid); /* natively every rank deletes the file, and the last finds none: its code is by chance */
  SAY("  %s\n", access(name, F_OK) == 0 ? "still there" : "gone");
}

/* PnetCDF has something to say about that on stdout, which is not always the same. */
static int try_no_communicator(void) {
  int ncid = -1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  fprintf(stderr, "code: %s\n",
          ncmpi_strerrno(ncmpi_create(MPI_COMM_NULL, "out.nc", NC_CLOBBER, MPI_INFO_NULL, &ncid)));
  MPI_Finalize();
  return 0;
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  if (argc == 1) return try_no_communicator();
  for (int i = 1; i < argc; i++) {
    SAY("name %d\n", i);
    try_create("of two formats", argv[i], NC_CLOBBER | NC_64BIT_OFFSET | NC_64BIT_DATA);
    try_open("absent", argv[i], NC_NOWRITE);
    try_create("new", argv[i], NC_NOCLOBBER | NC_64BIT_DATA);
    try_create("there", argv[i], NC_NOCLOBBER);
    try_open("to read", argv[i], NC_NOWRITE);
    try_create("again", argv[i], NC_CLOBBER);
    try_open("to write", argv[i], NC_WRITE);
    int error = rank == 0 ? ncmpi_delete(argv[i], MPI_INFO_NULL) : NC_NOERR;
    SAY("  deleted: %s\n", ncmpi_strerrno(error));
    try_abort(argv[i]);
    try_create("last", argv[i], NC_CLOBBER);
  }
  MPI_Finalize();
  return 0;
}
