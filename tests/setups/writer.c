/* SPDX-License-Identifier: BSD-3-Clause */
/* A small checkpoint writer: FILE [MIB_PER_RANK [STEPS]]. Blocking and nonblocking puts, reads back, closes. */
#include "setups.h"

int main(int argc, char **argv) {
  begin(&argc, &argv);
  const char *path = argc > 1 ? argv[1] : "out.nc";
  const double mib = argc > 2 ? atof(argv[2]) : 0.25;
  const int steps = argc > 3 ? atoi(argv[3]) : 4;
  const MPI_Offset n = (MPI_Offset)(mib * 131072);
  int ncid, dims[2], v, w, id;
  long long wrong = 0;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", n * size, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "v", NC_DOUBLE, 2, dims, &v));
  CHECK(ncmpi_def_var(ncid, "w", NC_FLOAT, 2, dims, &w));
  CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 5, "hello"));
  CHECK(ncmpi_enddef(ncid));
  double *data = malloc(sizeof *data * (size_t)n), *back = malloc(sizeof *back * (size_t)n);
  for (int t = 0; t < steps; t++) {
    for (MPI_Offset i = 0; i < n; i++) data[i] = t * 1e6 + rank * 1e4 + (double)(i % 4096) * 0.25;
    MPI_Offset start[2] = {t, n * rank}, count[2] = {1, n};
    CHECK(ncmpi_put_vara_double_all(ncid, v, start, count, data));
    CHECK(ncmpi_iput_vara_double(ncid, w, start, count, data, &id));
    CHECK(ncmpi_wait_all(ncid, 1, &id, NULL));
    start[1] = n * ((rank + 1) % size);
    CHECK(ncmpi_get_vara_double_all(ncid, v, start, count, back));
    for (MPI_Offset i = 0; i < n; i++)
      wrong += back[i] != t * 1e6 + (rank + 1) % size * 1e4 + (double)(i % 4096) * 0.25;
  }
  CHECK(ncmpi_close(ncid));
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d steps, %lld wrong\n", path, steps, wrong);
  free(data), free(back);
  MPI_Finalize();
  return wrong != 0;
}
