/* SPDX-License-Identifier: BSD-3-Clause */
/* One of several programs of a job, by its argument: one that looks at the whole job, one that aborts while its other
 * processes compute, wait and end, and one that goes on for longer than that. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int sum_of(int mine) {
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static void look(void) {
  int all = 0, number = 0;
  MPI_Pcontrol(0);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  const int sum = sum_of(1);
  MPI_Pcontrol(1);
  const int own = sum_of(1);
  if (rank == 0) printf("%d of %d, %d of %d\n", own, size, sum, all);
}

static void abort_it(int code) {
  if (rank == 1) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) MPI_Finalize();
  while (rank > 2) {}
  usleep(200000);
  MPI_Abort(MPI_COMM_WORLD, code);
}

static int say(MPI_Comm comm, int keyval, void *value, void *state) {
  (void)comm, (void)keyval, (void)value, (void)state;
  const int sum = sum_of(1);
  if (rank == 0) printf("%d end\n", sum);
  return MPI_SUCCESS;
}

static void go_on(int ms) {
  int key = 0;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, say, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  usleep((unsigned)ms * 1000);
  if (sum_of(1) == size && rank == 0) printf("%d go on\n", size);
}

int main(int argc, char **argv) {
  int ended = 0;
  const char *what = argc > 1 ? argv[1] : "", *number = argc > 2 ? argv[2] : "0";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "look") == 0) look();
  if (strcmp(what, "abort") == 0) abort_it(atoi(number));
  if (strcmp(what, "go-on") == 0) go_on(atoi(number));
  MPI_Finalize();
  MPI_Finalized(&ended);
  if (rank == 0 && ended) puts("ended");
  return 0;
}
