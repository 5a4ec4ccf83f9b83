/* SPDX-License-Identifier: BSD-3-Clause */
/* signals WAY [calm]: handlers that use files, or jump, whatever they interrupt. What is in the files does not depend
 * on when a signal comes; with "calm" it comes while no call is under way. last-state   as when a batch system says
 * that time is over: the handler writes, closes, finalizes and ends jump         the handler jumps out of a call, and
 * the program goes on with the file every        each of a hundred signals has the handler put and get a value another
 * the handler makes a file of its own late         the handler is to end a wait for another process, which comes after
 * it only */
#include "setups.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kLength = 200000, kSignals = 100 };
static const char *way;
static bool is_calm;
static int ncid, var, handled;
static time_t handled_at;
static sigjmp_buf place;
static double zeros[kLength], values[kLength], read_back[kLength];

static int make(MPI_Comm comm, const char *path) {
  int id, dims[2];
  CHECK(ncmpi_create(comm, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &id));
  CHECK(ncmpi_def_dim(id, "time", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(id, "x", kLength, &dims[1]));
  CHECK(ncmpi_def_var(id, "v", NC_DOUBLE, 2, dims, &var));
  CHECK(ncmpi_enddef(id));
  return id;
}

static void put(int id, int record, const double *data) {
  const MPI_Offset start[] = {record, 0}, count[] = {1, kLength};
  CHECK(ncmpi_put_vara_double_all(id, var, start, count, data));
}

static void put_and_look(int record) {
  const MPI_Offset start[] = {record, 0}, count[] = {1, kLength};
  for (int i = 0; i < kLength; ++i) values[i] = 1000 * record + i + 1;
  put(ncid, record, values);
  CHECK(ncmpi_get_vara_double_all(ncid, var, start, count, read_back));
  if (memcmp(values, read_back, sizeof values) != 0) printf("record %d was read wrong\n", record);
}

static void write_last_state(int number) {
  (void)number;
  put_and_look(1);
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  _exit(5);
}

static void jump(int number) {
  (void)number;
  siglongjmp(place, 1);
}

/* For one signal. While it is handled another one would go to another thread, one of MPI's. */
static void set_timer(long us) {
  const struct itimerval timer = {.it_value.tv_usec = us};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void put_and_get_value(int number) {
  (void)number;
  const MPI_Offset index[] = {1, handled % kLength};
  const double value = ++handled;
  double same = 0;
  CHECK(ncmpi_begin_indep_data(ncid));
  CHECK(ncmpi_put_var1_double(ncid, var, index, &value));
  CHECK(ncmpi_get_var1_double(ncid, var, index, &same));
  CHECK(ncmpi_end_indep_data(ncid));
  if (same != value) printf("value %d was read wrong\n", handled);
  if (!is_calm) set_timer(5000);
}

static void make_another(int number) {
  (void)number;
  const int another = make(MPI_COMM_SELF, "another.nc");
  put(another, 0, values);
  CHECK(ncmpi_close(another));
  handled = 1;
}

static void note_when(int number) {
  (void)number;
  handled_at = time(NULL);
}

/* Until the handler ends the program, jumps, or has been called so often. */
static void be_interrupted(int times) {
  set_timer(is_calm ? 0 : 50000);
  while (handled < times) {
    put(ncid, 0, zeros);
    if (is_calm) raise(SIGALRM);
  }
  set_timer(0);
}

/* Rank 0 reads what the others write when its handler should long have been called. */
static void wait_for_each_other(void) {
  if (rank == 0 && is_calm) raise(SIGALRM);
  if (rank == 0 && !is_calm) set_timer(100000);
  if (rank != 0 && !is_calm) sleep(5);
  put_and_look(0);
  if (rank == 0 && !is_calm && (handled_at == 0 || time(NULL) - handled_at < 1)) printf("the handler came too late\n");
  CHECK(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  static void (*const handlers[])(int) = {write_last_state, jump, put_and_get_value, make_another, note_when};
  static const char *const ways[] = {"last-state", "jump", "every", "another", "late"};
  begin(&argc, &argv);
  way = argv[1];
  is_calm = argc > 2;
  ncid = make(MPI_COMM_WORLD, "out.nc");
  for (int i = 0; i < 5; ++i)
    if (strcmp(way, ways[i]) == 0) signal(SIGALRM, handlers[i]);
  put(ncid, 1, zeros);
  if (strcmp(way, "late") == 0) {
    wait_for_each_other();
  } else {
    if (sigsetjmp(place, 1) == 0) be_interrupted(strcmp(way, "every") == 0 ? kSignals : 1);
    for (int record = 0; strcmp(way, "jump") == 0 && record < 3; ++record) put_and_look(record);
    CHECK(ncmpi_close(ncid));
  }
  SAY("done\n");
  MPI_Finalize();
  return 0;
}
