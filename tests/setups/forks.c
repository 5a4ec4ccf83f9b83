/* SPDX-License-Identifier: BSD-3-Clause */
/* A child of fork() does what the argument says with its parent's file, or one of its own. Its parent goes on then, and
 * says what is in the file. */
#include "setups.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kEach = 20000, kMine = 10 };

static const char *way;
static int ncid = -1, var, values[kEach];

static int is(const char *name) { return strcmp(way, name) == 0; }

static void say(const char *who, const char *what, int code) {
  if (rank == 0) printf("%s: %s: %s\n", who, what, ncmpi_strerrno(code));
  fflush(stdout);
}

static void close_file(void) {
  if (ncid < 0) return;
  say("the end", "close", ncmpi_close(ncid));
  ncid = -1;
}

static int put(int at, int value) {
  const MPI_Offset start = rank * kEach + at;
  return ncmpi_put_var1_int(ncid, var, &start, &value);
}

static int get(int at) {
  const MPI_Offset start = rank * kEach + at;
  int value = -1;
  CHECK(ncmpi_get_var1_int(ncid, var, &start, &value));
  return value;
}

static void define(const char *path, MPI_Comm comm, int processes) {
  int x;
  CHECK(ncmpi_create(comm, path, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", (MPI_Offset)kEach * processes, &x));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &x, &var));
  CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 5, "begun"));
}

static void put_all(void) {
  const MPI_Offset start = rank * kEach, count = kEach;
  CHECK(ncmpi_put_vara_int_all(ncid, var, &start, &count, values));
}

static void own_file(void) {
  define("own.nc", MPI_COMM_SELF, 1);
  CHECK(ncmpi_enddef(ncid));
  put_all();
  say("child", "close of its own", ncmpi_close(ncid));
}

static void read_all(void) {
  CHECK(ncmpi_end_indep_data(ncid));
  const MPI_Offset start = rank * kEach, count = kEach;
  CHECK(ncmpi_get_vara_int_all(ncid, var, &start, &count, values));
  say("child", "get of all", values[kEach - 1] == kEach - 1 ? NC_NOERR : NC_EREAD);
}

static void grandchild(void) {
  say("child", "put", put(kMine, 5));
  const pid_t child = fork();
  if (child == 0) say("grandchild", "put", put(kMine + 1, get(kMine) + 1)), _exit(0);
  waitpid(child, NULL, 0);
  say("child", "put", put(kMine + 2, get(kMine + 1) + 1));
}

static void add_a_variable(void) {
  const int dim = 0;
  int other;
  CHECK(ncmpi_redef(ncid));
  CHECK(ncmpi_def_var(ncid, "added", NC_INT, 1, &dim, &other));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_put_var_int_all(ncid, other, values));
  say("child", "close with another variable", ncmpi_close(ncid));
}

static int closed[2]; /* a pipe that ends when the parent has closed the file */

static void put_when_closed(void) {
  char nothing;
  close(closed[1]);
  if (read(closed[0], &nothing, 1) != 0) _exit(9);
  say("child", "put", put(kMine, 9));
  say("child", "close", ncmpi_close(ncid));
}

static void as_child(void) {
  if (is("put") || is("renamed") || is("removed")) say("child", "put", put(kMine, get(3) + 1000));
  if (is("close") || is("define")) say("child", "close", ncmpi_close(ncid));
  if (is("put-close")) say("child", "put", put(kMine, 9)), say("child", "close", ncmpi_close(ncid));
  if (is("pending")) say("child", "wait", ncmpi_wait(ncid, NC_REQ_ALL, NULL, NULL));
  if (is("abort")) say("child", "abort", ncmpi_abort(ncid));
  if (is("read")) read_all();
  if (is("own")) own_file();
  if (is("redef")) add_a_variable();
  if (is("parent-closes")) put_when_closed();
  if (is("grandchild")) grandchild();
  if (is("exit")) exit(0);
  _exit(0);
}

int main(int argc, char **argv) {
  way = argc > 1 ? argv[1] : "put";
  begin(&argc, &argv);
  for (int i = 0; i < kEach; i++) values[i] = i;
  define("out.nc", MPI_COMM_WORLD, size);
  if (is("exit")) atexit(close_file);
  if (!is("define")) {
    CHECK(ncmpi_enddef(ncid));
    put_all();
    CHECK(ncmpi_begin_indep_data(ncid));
    CHECK(put(3, 33));
  }
  int request, pending = 4444;
  const MPI_Offset at = rank * kEach + kMine;
  if (is("pending")) CHECK(ncmpi_iput_var1_int(ncid, var, &at, &pending, &request));
  if (pipe(closed) != 0) return 9;
  if (is("renamed") && rank == 0) rename("out.nc", "elsewhere.nc");
  if (is("removed") && rank == 0) unlink("out.nc");
  MPI_Barrier(MPI_COMM_WORLD);
  const pid_t child = fork();
  if (child == 0) as_child();
  int status = 0;
  if (is("parent-closes")) close_file();
  close(closed[1]);
  waitpid(child, &status, 0);
  if (rank == 0) printf("child: %x\n", (unsigned)status);
  if (ncid < 0) {
    CHECK(ncmpi_open(MPI_COMM_WORLD, "out.nc", NC_WRITE, MPI_INFO_NULL, &ncid));
    CHECK(ncmpi_begin_indep_data(ncid));
  }
  if (is("define")) {
    CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 5, "ended"));
    CHECK(ncmpi_enddef(ncid));
    put_all();
    CHECK(ncmpi_begin_indep_data(ncid));
  }
  if (is("pending")) CHECK(ncmpi_wait(ncid, 1, &request, NULL));
  CHECK(put(4, 44));
  if (rank == 0) printf("parent: %d %d %d %d %d\n", get(3), get(4), get(kMine), get(kMine + 1), get(kMine + 2));
  fflush(stdout);
  CHECK(put(kMine, get(kMine) + 1));
  close_file();
  MPI_Finalize();
  return 0;
}
