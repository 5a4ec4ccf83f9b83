/* SPDX-License-Identifier: BSD-3-Clause */
/* Small reads of a file that is written to past PnetCDF meanwhile: created|opened. */
#include "setups.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { kX = 100, kAt = 7 };
static const char name[] = "foreign.nc";
static int ncid, var;
static MPI_Offset place; /* of element kAt in the file */

static void make(int stays_open) {
  int dim, data[kX];
  for (int i = 0; i < kX; i++) data[i] = i;
  CHECK(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", kX, &dim));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_inq_varoffset(ncid, var, &place));
  place += kAt * 4;
  CHECK(ncmpi_put_var_int_all(ncid, var, data));
  if (stays_open) CHECK(ncmpi_sync(ncid));
  if (stays_open) return;
  CHECK(ncmpi_close(ncid));
  CHECK(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &ncid));
}

static int value(void) {
  const MPI_Offset at = kAt;
  int found = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 4; i++) CHECK(ncmpi_get_var1_int_all(ncid, var, &at, &found));
  MPI_Barrier(MPI_COMM_WORLD);
  return found;
}

static void with_command(const char *format) {
  char command[256];
  snprintf(command, sizeof command, format, name, (int)place);
  if (system(command) != 0) MPI_Abort(MPI_COMM_WORLD, 5);
}

static void with_write(void) {
  const int fd = open(name, O_RDWR);
  if (pwrite(fd, "\0\0\1\1", 4, place) != 4) MPI_Abort(MPI_COMM_WORLD, 5);
  close(fd);
}

static FILE *with_stdio(void) {
  FILE *stream = fopen(name, "r+");
  fseek(stream, place, SEEK_SET);
  fwrite("\0\0\2\2", 1, 4, stream);
  fflush(stream);
  return stream;
}

static void with_mpi(void) {
  MPI_File file;
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, place, "\0\0\3\3", 4, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

#define AFTER(writing)                 \
  do {                                 \
    if (rank == 0) writing;            \
    const int found_ = value();        \
    SAY("%s: %d\n", #writing, found_); \
  } while (0)

int main(int argc, char **argv) {
  FILE *stream = NULL;
  begin(&argc, &argv);
  make(strcmp(argv[1], "created") == 0);
  AFTER((void)0);
  AFTER(with_write());
  AFTER(stream = with_stdio());
  AFTER(with_mpi());
  AFTER(with_command("printf '\\0\\0\\4\\4' | dd of=%1$s bs=1 seek=%2$d conv=notrunc 2> /dev/null"));
  AFTER((fseek(stream, place, SEEK_SET), fwrite("\0\0\5\5", 1, 4, stream), fflush(stream)));
  AFTER(with_command(
      "cp %1$s copy; printf '\\0\\0\\6\\6' | dd of=copy bs=1 seek=%2$d conv=notrunc 2> /dev/null; cat copy > %1$s"));
  if (stream != NULL) fclose(stream);
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
