/* SPDX-License-Identifier: BSD-3-Clause */
/* I/O threads with a file each: THREADS STEPS [serial]. With "serial" one thread does the same work, file after file,
 * which is what the files are compared with: native PnetCDF, as Debian builds it, is not safe for several threads. */
#include "in_threads.h"
#include "setups.h"

#include <string.h>

enum { kX = 3000, kMost = 8 };
typedef struct {
  int ncid, number, steps;
  MPI_Comm comm;
  long wrong;
} Output;

static double value(int file, int step, int of_rank, int i) {
  return file * 1e6 + step * 1e4 + of_rank * 100 + i * 1e-4;
}

static void create(Output *out) {
  char name[32];
  int dims[2], var;
  snprintf(name, sizeof name, "thread%d.nc", out->number);
  CHECK(ncmpi_create(out->comm, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &out->ncid));
  CHECK(ncmpi_def_dim(out->ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(out->ncid, "x", (MPI_Offset)kX * size, &dims[1]));
  CHECK(ncmpi_def_var(out->ncid, "blocking", NC_DOUBLE, 2, dims, &var));
  CHECK(ncmpi_def_var(out->ncid, "posted", NC_DOUBLE, 2, dims, &var));
  CHECK(ncmpi_def_var(out->ncid, "alone", NC_DOUBLE, 1, dims + 1, &var));
  CHECK(ncmpi_enddef(out->ncid));
}

static void step(Output *out, int t) {
  double data[kX], back[kX];
  const int other = (rank + 1) % size;
  MPI_Offset start[2] = {t, (MPI_Offset)kX * rank}, count[2] = {1, kX};
  int request;
  for (int i = 0; i < kX; i++) data[i] = value(out->number, t, rank, i);
  CHECK(ncmpi_put_vara_double_all(out->ncid, 0, start, count, data));
  CHECK(ncmpi_iput_vara_double(out->ncid, 1, start, count, data, &request));
  CHECK(ncmpi_wait_all(out->ncid, 1, &request, NULL));
  start[1] = (MPI_Offset)kX * other;
  CHECK(ncmpi_get_vara_double_all(out->ncid, t % 2, start, count, back));
  for (int i = 0; i < kX; i++) out->wrong += back[i] != value(out->number, t, other, i);
  if (t % 4) return;
  start[1] = (MPI_Offset)kX * rank;
  CHECK(ncmpi_begin_indep_data(out->ncid));
  CHECK(ncmpi_put_vara_double(out->ncid, 2, start + 1, count + 1, data));
  CHECK(ncmpi_get_vara_double(out->ncid, 2, start + 1, count + 1, back));
  out->wrong += memcmp(data, back, sizeof data) != 0;
  CHECK(ncmpi_end_indep_data(out->ncid));
}

static void *work(void *argument) {
  Output *out = argument;
  const int creates = out->ncid < 0;
  if (creates) create(out);
  for (int t = 0; t < out->steps; t++) step(out, t);
  if (creates) CHECK(ncmpi_close(out->ncid));
  return NULL;
}

/* Files are created and closed by the main thread where they share its communicator, by their threads otherwise. */
int main(int argc, char **argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 2, steps = argc > 2 ? atoi(argv[2]) : 20;
  const int serial = argc > 3 && strcmp(argv[3], "serial") == 0;
  Output out[kMost];
  int level;
  MPI_Init_thread(&argc, &argv, serial ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < threads; i++) {
    out[i] = (Output){-1, i, steps, MPI_COMM_WORLD, 0};
    if (i % 2)
      MPI_Comm_dup(MPI_COMM_WORLD, &out[i].comm);
    else
      create(&out[i]);
  }
  in_threads(threads, work, out, sizeof *out, serial);
  long wrong = 0;
  for (int i = 0; i < threads; i++) {
    if (i % 2)
      MPI_Comm_free(&out[i].comm);
    else
      CHECK(ncmpi_close(out[i].ncid));
    wrong += out[i].wrong;
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  SAY("%d files, %ld wrong\n", threads, wrong);
  MPI_Finalize();
  return 0;
}
