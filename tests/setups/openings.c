/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that create, close and open files of their own all the time, of each kind that MPI-IO has a say in: THREADS
 * ROUNDS [serial]. With "serial" one thread does the same work: native PnetCDF is not safe for several. */
#include "in_threads.h"
#include "no_elements.h"

#include <string.h>

enum { kX = 10, kMost = 16 };
static int rounds;
static int wrong[kMost];

static int write_file(const char *name, int native, int seed) {
  int ncid = -1, dim, var, error;
  const MPI_Offset start = 0, count = kX;
  int data[kX];
  for (int i = 0; i < kX; i++) data[i] = seed + i;
  if ((error = ncmpi_create(MPI_COMM_SELF, name, NC_CLOBBER, MPI_INFO_NULL, &ncid))) return error;
  ncmpi_def_dim(ncid, "x", kX, &dim);
  ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var);
  if ((error = ncmpi_enddef(ncid))) return error;
  if (native && (error = hand_back(ncid))) return error;
  if ((error = ncmpi_put_vara_int_all(ncid, var, &start, &count, data))) return error;
  return ncmpi_close(ncid);
}

static int read_file(const char *name, int native, int seed) {
  int ncid = -1, error, back[kX] = {0}, differ = 0;
  const MPI_Offset start = 0, count = kX;
  if ((error = ncmpi_open(MPI_COMM_SELF, name, NC_NOWRITE, MPI_INFO_NULL, &ncid))) return error;
  if (native && (error = hand_back(ncid))) return error;
  if ((error = ncmpi_get_vara_int_all(ncid, 0, &start, &count, back))) return error;
  for (int i = 0; i < kX; i++) differ += back[i] != seed + i;
  error = ncmpi_close(ncid);
  return differ ? differ : error;
}

static void *work(void *argument) {
  const int me = (int)((int *)argument - wrong);
  static const char *const kinds[] = {"plain%d.nc", "ufs:colon%d.nc", "native%d.nc"};
  const int native = me % 3 == 2;
  char name[32];
  snprintf(name, sizeof name, kinds[me % 3], rank * kMost + me);
  for (int i = 0; i < rounds; i++) {
    wrong[me] += write_file(name, native, me * 1000 + i) != NC_NOERR;
    wrong[me] += read_file(name, native, me * 1000 + i) != NC_NOERR;
  }
  return NULL;
}

int main(int argc, char **argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 3;
  const int serial = argc > 3 && strcmp(argv[3], "serial") == 0;
  int level, sum = 0;
  MPI_Init_thread(&argc, &argv, serial ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rounds = argc > 2 ? atoi(argv[2]) : 50;
  in_threads(threads, work, wrong, sizeof *wrong, serial);
  for (int i = 0; i < threads; i++) sum += wrong[i];
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SAY("%d threads, %d wrong\n", threads, sum);
  MPI_Finalize();
  return 0;
}
