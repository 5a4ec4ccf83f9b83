/* SPDX-License-Identifier: BSD-3-Clause */
/* Lives within its limits. "many N": N files open at once, first all in define mode. "describe FILE": a file
 * with a header of 4 MiB. "read FILE [BYTES]": reads a file, BYTES being the last process's limit on the size of files.
 */
#include "setups.h"

#include <dirent.h>
#include <string.h>
#include <sys/resource.h>

static int open_descriptors(void) {
  int count = -3; /* ".", "..", the folder itself */
  DIR *folder = opendir("/proc/self/fd");
  while (folder != NULL && readdir(folder) != NULL) count++;
  if (folder != NULL) closedir(folder);
  return count;
}

static void many(int files) {
  int *ids = malloc(sizeof *ids * (size_t)files), dim, var = 0, data[100];
  const int before = open_descriptors();
  for (int f = 0; f < files; f++) {
    char name[32];
    snprintf(name, sizeof name, "member%04d.nc", f);
    CHECK(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &ids[f]));
    CHECK(ncmpi_def_dim(ids[f], "x", 100 * size, &dim));
    CHECK(ncmpi_def_var(ids[f], "v", NC_INT, 1, &dim, &var));
  }
  const int defining = open_descriptors();
  for (int f = 0; f < files; f++) CHECK(ncmpi_enddef(ids[f]));
  const MPI_Offset start = 100 * rank, count = 100;
  for (int f = 0; f < files; f++) {
    for (int i = 0; i < 100; i++) data[i] = f * 1000 + rank * 100 + i;
    CHECK(ncmpi_put_vara_int_all(ids[f], var, &start, &count, data));
  }
  if (rank == 0) fprintf(stderr, "descriptors %d %d %d\n", before, defining, open_descriptors());
  for (int f = 0; f < files; f++) CHECK(ncmpi_close(ids[f]));
  SAY("%d files\n", files);
}

static void describe(const char *path) {
  static char text[4 << 20];
  const double data[4] = {1, 2, 3, 4};
  int ncid, dims[2], var;
  memset(text, 'x', sizeof text);
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "text", sizeof text, text));
  CHECK(ncmpi_def_dim(ncid, "y", 2, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", 2, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "v", NC_DOUBLE, 2, dims, &var));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_var_double_all(ncid, var, data));
  CHECK(ncmpi_close(ncid));
}

static void read_all(const char *path) {
  int ncid, dims, ids[2];
  MPI_Offset start[2] = {0, 0}, count[2];
  CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_inq_var(ncid, 0, NULL, NULL, &dims, ids, NULL));
  CHECK(ncmpi_inq_dimlen(ncid, ids[0], &count[0]));
  CHECK(ncmpi_inq_dimlen(ncid, ids[1], &count[1]));
  double *data = malloc(sizeof *data * (size_t)(count[0] * count[1])), sum = 0;
  CHECK(ncmpi_get_vara_double_all(ncid, 0, start, count, data));
  for (MPI_Offset i = 0; i < count[0] * count[1]; i++) sum += data[i];
  MPI_Offset got;
  CHECK(ncmpi_inq_get_size(ncid, &got));
  CHECK(ncmpi_close(ncid));
  SAY("sum %.3f, %lld bytes read\n", sum, (long long)got);
  free(data);
}

static void limit_files(rlim_t bytes) {
  const struct rlimit limit = {bytes, bytes};
  if (rank == size - 1 && setrlimit(RLIMIT_FSIZE, &limit) != 0) MPI_Abort(MPI_COMM_WORLD, 4);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  if (argc > 2 && strcmp(argv[1], "many") == 0) many(atoi(argv[2]));
  if (argc > 2 && strcmp(argv[1], "describe") == 0) describe(argv[2]);
  if (argc > 3) limit_files((rlim_t)atoll(argv[3]));
  if (argc > 2 && strcmp(argv[1], "read") == 0) read_all(argv[2]);
  MPI_Finalize();
  return 0;
}
