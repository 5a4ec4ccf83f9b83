/* SPDX-License-Identifier: BSD-3-Clause */
/* Many pending requests, completed in odd orders, and many small reads, of a file that others write to in between. */
#include "setups.h"

#include <string.h>

enum { kX = 40, kRows = 3000, kRequests = 1200 };

static int create(const char *path) {
  int ncid, dims[3], var;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "row", (MPI_Offset)kRows * size, &dims[1]));
  CHECK(ncmpi_def_dim(ncid, "x", kX, &dims[2]));
  CHECK(ncmpi_def_var(ncid, "fixed", NC_INT, 2, dims + 1, &var));
  CHECK(ncmpi_def_var(ncid, "records", NC_SHORT, 2, (int[]){dims[0], dims[1]}, &var));
  CHECK(ncmpi_enddef(ncid));
  return ncid;
}

/* Waits in blocks, backwards, with ids named twice, unknown and null ones, posts in between, cancels. */
static void requests(int ncid) {
  int ids[kRequests], status[kRequests], some[8], left = 0;
  static int data[kRequests][kX], back[kRequests][kX];
  for (int i = 0; i < kRequests; i++) {
    for (int j = 0; j < kX; j++) data[i][j] = (i * size + rank) * kX + j;
    const MPI_Offset start[2] = {(MPI_Offset)i * size + rank, 0}, count[2] = {1, kX};
    CHECK(ncmpi_iput_vara_int(ncid, 0, start, count, data[i], &ids[i]));
  }
  for (int block = 9; block >= 5; block--)
    CHECK(ncmpi_wait_all(ncid, kRequests / 10, ids + block * kRequests / 10, status));
  memcpy(some, ids, sizeof some);
  some[1] = NC_REQ_NULL;
  CHECK(ncmpi_wait_all(ncid, 4, some, status));
  SAY("null: %s, then %d\n", ncmpi_strerrno(status[1]), some[0] == NC_REQ_NULL);
  int error = ncmpi_wait_all(ncid, 2, (int[]){ids[0], 99999}, status);
  SAY("done already, unknown: %s %s %s\n", ncmpi_strerrno(error), ncmpi_strerrno(status[0]), ncmpi_strerrno(status[1]));
  error = ncmpi_cancel(ncid, 2, some + 5, status);
  SAY("cancelled: %s, again: ", ncmpi_strerrno(error));
  error = ncmpi_cancel(ncid, 1, (int[]){ids[5]}, status);
  SAY("%s\n", ncmpi_strerrno(error));
  const MPI_Offset start[2] = {(MPI_Offset)5 * size + rank, 0}, count[2] = {1, kX};
  CHECK(ncmpi_iput_vara_int(ncid, 0, start, count, data[5], &ids[5]));
  CHECK(ncmpi_inq_nreqs(ncid, &left));
  SAY("new id %d, %d left\n", ids[5], left);
  CHECK(ncmpi_wait_all(ncid, NC_REQ_ALL, NULL, NULL));
  for (int i = 0; i < kRequests; i++) {
    const MPI_Offset from[2] = {(MPI_Offset)i * size + (rank + 1) % size, 0};
    CHECK(ncmpi_iget_vara_int(ncid, 0, from, count, back[i], &ids[i]));
  }
  CHECK(ncmpi_wait_all(ncid, kRequests / 2, ids + kRequests / 2, status));
  CHECK(ncmpi_wait_all(ncid, kRequests / 2, ids, status));
  long wrong = 0;
  for (int i = 0; i < kRequests; i++)
    for (int j = 0; j < kX; j++)
      wrong += i != 6 && back[i][j] != (i * size + (rank + 1) % size) * kX + j; /* 6 was cancelled */
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  SAY("%ld wrong\n", wrong);
}

/* Requests of one wait that meet: what was posted last stays, which natively is not defined. */
static void overlapping(int ncid) {
  enum { kSmall = 4, kLarge = kRows };
  static int small[kSmall * kX], large[kLarge * kX];
  int ids[3], status[3];
  long wrong = 0;
  for (int round = 0; round < 20; round++) {
    const MPI_Offset from = (MPI_Offset)kRows * rank, start[2] = {from + 10, 0}, few[2] = {kSmall, kX};
    const MPI_Offset begin[2] = {from, 0}, all[2] = {kLarge, kX}, later[2] = {from + 12, 0};
    for (int i = 0; i < kSmall * kX; i++) small[i] = -1 - round;
    for (int i = 0; i < kLarge * kX; i++) large[i] = round;
    CHECK(ncmpi_iput_vara_int(ncid, 0, start, few, small, &ids[0]));
    CHECK(ncmpi_iput_vara_int(ncid, 0, begin, all, large, &ids[1]));
    CHECK(ncmpi_iput_vara_int(ncid, 0, later, few, small, &ids[2]));
    int backwards[3] = {ids[2], ids[1], ids[0]};
    CHECK(ncmpi_wait_all(ncid, 3, round % 2 ? backwards : ids, status));
    CHECK(ncmpi_get_vara_int_all(ncid, 0, begin, all, large));
    for (int i = 0; i < kLarge * kX; i++) wrong += large[i] != (i / kX >= 12 && i / kX < 16 ? -1 - round : round);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  SAY("overlapping: %ld wrong\n", wrong);
}

static void put_records(int ncid, int record, int value) {
  static short row[kRows];
  const MPI_Offset start[2] = {record, (MPI_Offset)kRows * rank}, count[2] = {1, kRows};
  for (int i = 0; i < kRows; i++) row[i] = (short)(value + i);
  CHECK(ncmpi_put_vara_short_all(ncid, 1, start, count, row));
}

/* Value by value, by stride, by column, by request; what does not lie there. */
static long small_reads(int ncid, int value) {
  long wrong = 0;
  CHECK(ncmpi_begin_indep_data(ncid));
  for (int i = 0; i < 4000; i++) {
    const MPI_Offset at[2] = {i % 3, (i * 37 + rank) % (kRows * size)}, start[2] = {0, at[1]}, count[2] = {3, 1};
    const MPI_Offset skip[2] = {1, 5}, few[2] = {1, 4}, from[2] = {i % 3, (i * 11) % (kRows - 20)};
    int one, many[4], id;
    float column[3];
    CHECK(ncmpi_get_var1_int(ncid, 1, at, &one));
    wrong += one != (short)(value + at[1] % kRows);
    CHECK(ncmpi_get_vara_float(ncid, 1, start, count, column));
    for (int t = 0; t < 3; t++) wrong += column[t] != (short)(value + at[1] % kRows);
    CHECK(ncmpi_iget_vars_int(ncid, 1, from, few, skip, many, &id));
    CHECK(ncmpi_wait(ncid, 1, &id, NULL));
    for (int k = 0; k < 4; k++) wrong += many[k] != value + (int)from[1] + 5 * k;
  }
  int ignored;
  const int beyond = ncmpi_get_var1_int(ncid, 1, (MPI_Offset[]){3, 0}, &ignored);
  CHECK(ncmpi_end_indep_data(ncid));
  SAY("beyond the last record: %s\n", ncmpi_strerrno(beyond));
  MPI_Offset got;
  CHECK(ncmpi_inq_get_size(ncid, &got));
  SAY("%lld bytes read by rank 0\n", (long long)got);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return wrong;
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int ncid = create("many.nc"), reader;
  if (argc > 1 && strcmp(argv[1], "overlapping") == 0) {
    overlapping(ncid);
    CHECK(ncmpi_close(ncid));
    MPI_Finalize();
    return 0;
  }
  requests(ncid);
  for (int record = 0; record < 3; record++) put_records(ncid, record, 100);
  MPI_Barrier(MPI_COMM_WORLD);
  long wrong = small_reads(ncid, 100);
  SAY("by the writer: %ld wrong\n", wrong);
  CHECK(ncmpi_close(ncid));
  CHECK(ncmpi_open(MPI_COMM_WORLD, "many.nc", NC_NOWRITE, MPI_INFO_NULL, &reader));
  wrong = small_reads(reader, 100);
  SAY("read only: %ld wrong\n", wrong);
  CHECK(ncmpi_open(MPI_COMM_WORLD, "many.nc", NC_WRITE, MPI_INFO_NULL, &ncid));
  for (int value = 200; value < 203; value++) {
    for (int record = 0; record < 3; record++) put_records(ncid, record, value);
    MPI_Barrier(MPI_COMM_WORLD);
    wrong = small_reads(reader, value);
    SAY("beside a writer: %ld wrong\n", wrong);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK(ncmpi_close(ncid));
  wrong = small_reads(reader, 202);
  SAY("after it: %ld wrong\n", wrong);
  CHECK(ncmpi_close(reader));
  MPI_Finalize();
  return 0;
}
