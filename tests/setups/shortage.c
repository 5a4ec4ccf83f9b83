/* SPDX-License-Identifier: BSD-3-Clause */
/* One process lacks what others have: WHAT RANK LEFT. WHAT is what they do then: create, open, enddef, vard. LEFT is
 * how many descriptors the process may still open; or noproc: it has no /proc any more; or noid: PnetCDF has no id left
 * for another file. Says what each process got. */
#define _GNU_SOURCE
#include "no_elements.h"

#include <services/staging/board.h>

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

enum { kLimit = 256, kX = 100 };
static int taken[kLimit], count;

/* Takes all descriptors but `left`. */
static void take_descriptors(int left) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = kLimit;
  setrlimit(RLIMIT_NOFILE, &limit);
  while ((taken[count] = open("/dev/null", O_RDONLY)) >= 0) count++;
  while (left-- > 0) close(taken[--count]);
}

static void give_descriptors_back(void) {
  while (count > 0) close(taken[--count]);
}

/* In a mount name space of its own. */
static void lose_proc(void) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      umount2("/proc", MNT_DETACH) != 0)
    perror("no /proc");
}

/* By having a file open, past the servers, as often as that can be. */
static void take_ids(void) {
  int ncid;
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  for (int i = 0; i < NC_MAX_NFILES; i++) {
    CHECK(ncmpi_open(MPI_COMM_SELF, "there.nc", NC_NOWRITE, MPI_INFO_NULL, &ncid));
    CHECK(hand_back(ncid));
  }
}

static int who;
static const char *what_is_left;

static void suffer(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != who) return;
  if (strcmp(what_is_left, "noproc") == 0)
    lose_proc();
  else if (strcmp(what_is_left, "noid") == 0)
    take_ids();
  else
    take_descriptors(atoi(what_is_left));
}

static int define(int ncid, const char *name) {
  int dim, var;
  if (ncmpi_inq_dimid(ncid, "x", &dim) != NC_NOERR) ncmpi_def_dim(ncid, "x", (MPI_Offset)kX * size, &dim);
  return ncmpi_def_var(ncid, name, NC_INT, 1, &dim, &var);
}

static int put(int ncid, int var, int value) {
  const MPI_Offset start = (MPI_Offset)kX * rank, n = kX;
  int data[kX];
  for (int i = 0; i < kX; i++) data[i] = value + rank * 1000 + i;
  return ncmpi_put_vara_int_all(ncid, var, &start, &n, data);
}

/* A file that is there, and the connection to whatever there is to connect to. */
static void prepare(void) {
  int ncid;
  CHECK(ncmpi_create(MPI_COMM_WORLD, "there.nc", NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(define(ncid, "v"));
  CHECK(ncmpi_enddef(ncid));
  CHECK(put(ncid, 0, 1));
  CHECK(ncmpi_close(ncid));
}

static void short_in_create(void) {
  int ncid = -1;
  suffer();
  say_codes("create", ncmpi_create(MPI_COMM_WORLD, "new.nc", NC_CLOBBER, MPI_INFO_NULL, &ncid));
  say_codes("define", define(ncid, "v"));
  say_codes("enddef", ncmpi_enddef(ncid));
  say_codes("put", put(ncid, 0, 5));
  say_codes("redef", ncmpi_redef(ncid));
  say_codes("define", define(ncid, "w"));
  say_codes("enddef", ncmpi_enddef(ncid));
  say_codes("put", put(ncid, 1, 7));
  say_codes("close", ncmpi_close(ncid));
}

/* How many files are open for writing at the staging servers, or not yet written; 0 without any. */
static long open_at_servers(void) {
  const char *boards = getenv(NESSIE_BOARD_VARIABLE);
  char path[4096], *folder = NULL;
  nessie_board board = {0};
  long files = 0;
  for (long i = boards == NULL ? 0 : strtol(boards, &folder, 10); i-- > 0;) {
    snprintf(path, sizeof path, "%s/board.%ld", folder + 1, i);
    const int file = open(path, O_RDONLY);
    if (file < 0 || read(file, &board, sizeof board) != sizeof board) perror(path);
    files += board.files;
    close(file);
  }
  return files;
}

static void short_in_open(void) {
  int ncid = -1;
  suffer();
  say_codes("open", ncmpi_open(MPI_COMM_WORLD, "there.nc", NC_WRITE, MPI_INFO_NULL, &ncid));
  say_codes("put", put(ncid, 0, 9));
  say_codes("close", ncmpi_close(ncid));
  if (strcmp(what_is_left, "noid") == 0) SAY("%ld open\n", open_at_servers());
}

static void short_in_enddef(void) {
  int ncid = -1;
  CHECK(ncmpi_open(MPI_COMM_WORLD, "there.nc", NC_WRITE, MPI_INFO_NULL, &ncid));
  suffer();
  for (int i = 0; i < 3; i++) {
    char name[8];
    snprintf(name, sizeof name, "w%d", i);
    say_codes("redef", ncmpi_redef(ncid));
    say_codes("define", define(ncid, name));
    say_codes("enddef", ncmpi_enddef(ncid));
    say_codes("put", put(ncid, 1 + i, 11 * i));
  }
  say_codes("close", ncmpi_close(ncid));
}

/* By a name that PnetCDF would take apart if it got it once more. */
static void short_in_vard(void) {
  int ncid = -1, data[kX];
  MPI_Datatype part;
  CHECK(ncmpi_create(MPI_COMM_WORLD, "at_00:00:00", NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(define(ncid, "v"));
  CHECK(ncmpi_enddef(ncid));
  CHECK(put(ncid, 0, 1));
  part = integers_across(4 * kX * rank + 2, kX - 1);
  for (int i = 0; i < kX; i++) data[i] = 13 * rank + i;
  suffer();
  say_codes("put_vard", ncmpi_put_vard_all(ncid, 0, part, data, kX - 1, MPI_INT));
  say_codes("put", put(ncid, 0, 17));
  MPI_Type_free(&part);
  say_codes("close", ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  if (argc < 4) return 2;
  who = atoi(argv[2]);
  what_is_left = argv[3];
  prepare();
  if (strcmp(argv[1], "create") == 0) short_in_create();
  if (strcmp(argv[1], "open") == 0) short_in_open();
  if (strcmp(argv[1], "enddef") == 0) short_in_enddef();
  if (strcmp(argv[1], "vard") == 0) short_in_vard();
  give_descriptors_back();
  MPI_Finalize();
  return 0;
}
