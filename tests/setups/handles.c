/* SPDX-License-Identifier: BSD-3-Clause */
/* Several handles on one file, in the ways that programs have them. Argument: the way. Natively, on one node, what was
 * put is seen at once through every handle. */
#include "no_elements.h"
#include "two_variables.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kX = 500 };
static const char *const kFile = "two.nc";

static int values[kX];
static const int *some(int step) {
  for (int i = 0; i < kX; i++) values[i] = step * 100000 + rank * kX + i;
  return values;
}

static int create(void) { return create_two_variables(kFile, kX); }

static int open_again(int mode) {
  int ncid;
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(ncmpi_open(MPI_COMM_WORLD, kFile, mode, MPI_INFO_NULL, &ncid));
  return ncid;
}

static void put(int ncid, int record, int step) {
  const MPI_Offset start[2] = {record, (MPI_Offset)kX * rank}, count[2] = {1, kX};
  CHECK(ncmpi_put_vara_int_all(ncid, 0, start + 1, count + 1, some(step)));
  CHECK(ncmpi_put_vara_int_all(ncid, 1, start, count, some(step)));
}

/* How many of the next rank's values are not those of `step`. */
static int stale(int ncid, int record, int step) {
  const int other = (rank + 1) % size;
  const MPI_Offset start[2] = {record, (MPI_Offset)kX * other}, count[2] = {1, kX};
  int back[2][kX], wrong = 0, all = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(ncmpi_get_vara_int_all(ncid, 0, start + 1, count + 1, back[0]));
  CHECK(ncmpi_get_vara_int_all(ncid, 1, start, count, back[1]));
  for (int v = 0; v < 2; v++)
    for (int i = 0; i < kX; i++) wrong += back[v][i] != step * 100000 + other * kX + i;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static MPI_Offset records(int ncid) {
  MPI_Offset length = -1;
  CHECK(ncmpi_inq_dimlen(ncid, 0, &length));
  return length;
}

static void monitor(void) { /* one writes, one looks on */
  const int writer = create();
  put(writer, 0, 1);
  const int reader = open_again(NC_NOWRITE);
  SAY("%lld records at the beginning\n", (long long)records(reader));
  for (int step = 2; step < 6; step++) {
    put(writer, 0, step);
    const int wrong = stale(reader, 0, step);
    SAY("step %d: %d stale\n", step, wrong);
  }
  CHECK(ncmpi_close(reader));
  CHECK(ncmpi_close(writer));
}

static void take_turns(int one, int two) {
  for (int step = 2; step < 8; step += 2) {
    put(two, 0, step);
    const int first = stale(one, 0, step);
    MPI_Barrier(MPI_COMM_WORLD);
    put(one, 0, step + 1);
    const int second = stale(two, 0, step + 1);
    SAY("step %d: %d and %d stale\n", step, first, second);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  put(one, 0, 50);
  MPI_Barrier(MPI_COMM_WORLD);
  put(two, 0, 51);
  CHECK(ncmpi_close(one));
  CHECK(ncmpi_close(two));
}

static void both_write(void) {
  const int one = create();
  put(one, 0, 1);
  take_turns(one, open_again(NC_WRITE));
}

static int open_natively(int mode) {
  const int ncid = open_again(mode);
  CHECK(hand_back(ncid));
  return ncid;
}

static void one_is_native(void) {
  const int one = create();
  put(one, 0, 1);
  take_turns(one, open_natively(NC_WRITE));
}

static void open_before_close(void) { /* the next phase opens what the last one has not closed yet */
  const int writer = create();
  for (int r = 0; r < 3; r++) put(writer, r, r);
  const int next = open_again(NC_WRITE);
  SAY("%lld records\n", (long long)records(next));
  CHECK(ncmpi_close(writer));
  put(next, 3, 3);
  for (int r = 0; r < 4; r++) {
    const int wrong = stale(next, r, r == 3 ? 3 : r);
    if (wrong && r != 0) SAY("record %d: %d\n", r, wrong);
  }
  CHECK(ncmpi_close(next));
}

static void created_over(void) { /* while another handle has it open, which knows of more records */
  const int old = create();
  for (int r = 0; r < 4; r++) put(old, r, 1);
  CHECK(ncmpi_sync(old));
  MPI_Barrier(MPI_COMM_WORLD);
  const int new = create();
  put(new, 0, 2);
  const int wrong = stale(new, 0, 2);
  SAY("%d stale\n", wrong);
  CHECK(ncmpi_sync(old));
  CHECK(ncmpi_close(new));
  CHECK(ncmpi_close(old));
}

/* Another file is copied over one that is open, and has more records. */
static void copy_over(int ncid) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && system("cp short.nc two.nc") != 0) puts("cannot copy");
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(ncmpi_close(ncid));
  SAY("%s\n", system("cmp short.nc two.nc") == 0 ? "same" : "differs");
}

static void copied_over(void) {
  const int other = create_two_variables("short.nc", kX);
  put(other, 0, 9);
  CHECK(ncmpi_close(other));
  const int written = create();
  for (int r = 0; r < 4; r++) put(written, r, 1);
  CHECK(ncmpi_sync(written));
  copy_over(written);
  const int again = create();
  for (int r = 0; r < 4; r++) put(again, r, 1);
  CHECK(ncmpi_close(again));
  copy_over(open_again(NC_WRITE));
}

static void deleted(void) { /* while it is open, and made anew */
  const int old = create();
  put(old, 0, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) CHECK(ncmpi_delete(kFile, MPI_INFO_NULL));
  struct stat status;
  SAY("%s\n", stat(kFile, &status) == 0 ? "there" : "gone");
  put(old, 1, 2);
  int wrong = stale(old, 1, 2);
  const int new = create();
  put(new, 0, 7);
  CHECK(ncmpi_close(old));
  wrong += stale(new, 0, 7);
  SAY("%d stale\n", wrong);
  CHECK(ncmpi_close(new));
}

static void renamed(void) { /* while it is open; opened by the new name */
  const int old = create();
  put(old, 0, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && rename(kFile, "renamed.nc") != 0) perror("rename");
  put(old, 1, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  int new;
  CHECK(ncmpi_open(MPI_COMM_WORLD, "renamed.nc", NC_NOWRITE, MPI_INFO_NULL, &new));
  const int wrong = stale(new, 1, 2);
  SAY("%lld records, %d stale\n", (long long)records(new), wrong);
  CHECK(ncmpi_close(new));
  CHECK(ncmpi_close(old));
}

static void append(void) { /* what a second program of the same job does */
  const int ncid = open_again(NC_WRITE);
  const int before = (int)records(ncid);
  put(ncid, before, before);
  const int wrong = stale(ncid, before, before);
  SAY("%d records before, %d stale\n", before, wrong);
  CHECK(ncmpi_close(ncid));
}

static void begin_to_append(void) {
  const int ncid = create();
  put(ncid, 0, 0);
  CHECK(ncmpi_close(ncid));
}

static void each_its_own(void) { /* each process opens the shared file by itself */
  const int whole = create();
  put(whole, 0, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  int own, back[kX], wrong = 0, all = 0;
  CHECK(ncmpi_open(MPI_COMM_SELF, kFile, NC_WRITE, MPI_INFO_NULL, &own));
  const MPI_Offset mine = (MPI_Offset)kX * rank, other = (MPI_Offset)kX * ((rank + 1) % size), count = kX;
  CHECK(ncmpi_put_vara_int_all(own, 0, &mine, &count, some(9)));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(ncmpi_get_vara_int_all(own, 0, &other, &count, back));
  for (int i = 0; i < kX; i++) wrong += back[i] != 900000 + (rank + 1) % size * kX + i;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SAY("%d stale\n", all);
  CHECK(ncmpi_close(own));
  CHECK(ncmpi_close(whole));
}

static void others_put(void) { /* by itself, through the one handle, and tells who reads by a message */
  const int ncid = create();
  int wrong = 0, all = 0;
  MPI_Datatype filetype = integers_across(2, kX - 1);
  CHECK(ncmpi_begin_indep_data(ncid));
  for (int i = 0; i < 1000; i++) {
    const MPI_Offset at = i * 7 % (kX * size);
    const int value = i + 1;
    int got = -1;
    if (rank == i % size) CHECK(ncmpi_put_var1_int(ncid, 0, &at, &value));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(ncmpi_get_var1_int(ncid, 0, &at, &got));
    wrong += got != value;
    if (i % 50 == 0) { /* by a way that is not staged: the lower halves of integers that are small */
      int all[kX];
      CHECK(ncmpi_get_vard(ncid, 0, filetype, all, kX - 1, MPI_INT));
      wrong += at < kX - 1 && all[at] >> 16 != value;
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK(ncmpi_end_indep_data(ncid));
  MPI_Type_free(&filetype);
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SAY("%d stale\n", all);
  CHECK(ncmpi_close(ncid));
}

/* One after the other, to the same places, through one handle each: what was put last is what stays. */
static void put_over(int handles, MPI_Offset width) {
  enum { kRounds = 150 };
  int ncid[2], dims[2], var, wrong = 0;
  int *row = malloc((size_t)width * sizeof *row);
  for (int h = 0; h < handles; h++) {
    if (h == 0) {
      CHECK(ncmpi_create(MPI_COMM_WORLD, kFile, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid[0]));
      CHECK(ncmpi_def_dim(ncid[0], "t", NC_UNLIMITED, &dims[0]));
      CHECK(ncmpi_def_dim(ncid[0], "x", width, &dims[1]));
      CHECK(ncmpi_def_var(ncid[0], "v", NC_INT, 2, dims, &var));
      CHECK(ncmpi_enddef(ncid[0]));
    } else {
      ncid[h] = open_again(NC_WRITE);
    }
    CHECK(ncmpi_begin_indep_data(ncid[h]));
  }
  for (int i = 0; i < kRounds; i++)
    for (int k = 0; k < size * handles; k++) {
      const MPI_Offset start[2] = {i % 20, 0}, count[2] = {1, width};
      for (MPI_Offset j = 0; j < width; j++) row[j] = i * 100 + k;
      if (rank == (i + k) % size) CHECK(ncmpi_put_vara_int(ncid[k / size], 0, start, count, row));
      MPI_Barrier(MPI_COMM_WORLD);
    }
  for (int h = 0; h < handles; h++) CHECK(ncmpi_end_indep_data(ncid[h]));
  for (int h = 0; h < handles; h++) CHECK(ncmpi_close(ncid[h]));
  CHECK(ncmpi_open(MPI_COMM_WORLD, kFile, NC_NOWRITE, MPI_INFO_NULL, &ncid[0]));
  for (int record = 0; record < 20; record++) {
    const MPI_Offset start[2] = {record, 0}, count[2] = {1, width};
    CHECK(ncmpi_get_vara_int_all(ncid[0], 0, start, count, row));
    for (MPI_Offset j = 0; j < width; j++) wrong += row[j] != (kRounds - 20 + record) * 100 + size * handles - 1;
  }
  SAY("%d are not what was put last\n", wrong);
  CHECK(ncmpi_close(ncid[0]));
  free(row);
}

static void put_over_small(void) { put_over(1, 3); }
static void put_over_large(void) { put_over(1, 60000); }
static void put_over_by_two(void) { put_over(2, 3); }
static void put_over_large_by_two(void) { put_over(2, 60000); }

/* Puts the part of this process in variable v by an MPI filetype, natively. */
static void put_by_filetype(int ncid, int step) {
  CHECK(hand_back(ncid));
  const int whole = kX * size, part = kX, start = kX * rank;
  MPI_Datatype type;
  MPI_Type_create_subarray(1, &whole, &part, &start, MPI_ORDER_C, MPI_INT, &type);
  MPI_Type_commit(&type);
  CHECK(ncmpi_put_vard_all(ncid, 0, type, some(step), kX, MPI_INT));
  MPI_Type_free(&type);
}

/* Reads bit by bit, through a staged handle, what `write` puts through a native one. */
static void bit_by_bit(int writer, void (*write)(int, int)) {
  int reader = open_again(NC_NOWRITE), wrong = 0, all = 0;
  for (int step = 2; step < 32; step++) {
    const MPI_Offset other = (MPI_Offset)kX * ((rank + 1) % size);
    write(writer, step);
    CHECK(ncmpi_sync(writer));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(ncmpi_begin_indep_data(reader));
    for (MPI_Offset i = 0; i < 7; i++) {
      const MPI_Offset at = other + i;
      int got = -1;
      CHECK(ncmpi_get_var1_int(reader, 0, &at, &got));
      wrong += got != step * 100000 + other + i;
    }
    CHECK(ncmpi_end_indep_data(reader));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  SAY("%d stale\n", all);
  CHECK(ncmpi_close(reader));
  CHECK(ncmpi_close(writer));
}

static void handed_back(void) { /* by its first access by a filetype */
  const int writer = create();
  put(writer, 0, 1);
  bit_by_bit(writer, put_by_filetype);
}

static void put_and_wait(int ncid, int step) {
  const MPI_Offset start = (MPI_Offset)kX * rank, count = kX;
  int request;
  if (step % 2 == 0) CHECK(ncmpi_put_vara_int_all(ncid, 0, &start, &count, some(step)));
  if (step % 2 == 0) return;
  CHECK(ncmpi_iput_vara_int(ncid, 0, &start, &count, some(step), &request));
  CHECK(ncmpi_wait_all(ncid, 1, &request, NULL));
}

static void native_writer(void) {
  const int first = create();
  put(first, 0, 1);
  CHECK(ncmpi_close(first));
  bit_by_bit(open_natively(NC_WRITE), put_and_wait);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } ways[] = {{"monitor", monitor},
              {"both_write", both_write},
              {"open_before_close", open_before_close},
              {"created_over", created_over},
              {"copied_over", copied_over},
              {"deleted", deleted},
              {"renamed", renamed},
              {"append", append},
              {"begin_to_append", begin_to_append},
              {"each_its_own", each_its_own},
              {"others_put", others_put},
              {"put_over_small", put_over_small},
              {"put_over_large", put_over_large},
              {"put_over_by_two", put_over_by_two},
              {"put_over_large_by_two", put_over_large_by_two},
              {"handed_back", handed_back},
              {"native_writer", native_writer},
              {"one_is_native", one_is_native}};
  begin(&argc, &argv);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (argc > 1 && strcmp(argv[1], ways[i].name) == 0) ways[i].run();
  MPI_Finalize();
  return 0;
}
