/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of which much is never written: variables with and without fill values, some elements of each, records skipped,
 * headers that grow. Before them a file that leaves its bytes in all memory that servers have for data. Arguments:
 * nothing, or PLACE: there it waits, having made the file `ready`, for the file `go`. */
#include "pauses.h"

enum { kKinds = 3, kTypes = 3, kRow = 1200, kFew = 3, kDirt = 1 << 20, kDirtRows = 20 };
static const nc_type types[kTypes] = {NC_BYTE, NC_SHORT, NC_DOUBLE};
static const char *place = "";

/* More than the servers' memory, none of it zero. */
static void leave_dirt(void) {
  static unsigned char dirt[kDirt];
  int ncid, dims[2], var;
  memset(dirt, 0xA5, sizeof dirt);
  CHECK(ncmpi_create(MPI_COMM_WORLD, "dirt.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "row", kDirtRows, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", kDirt, &dims[1]));
  CHECK(ncmpi_def_var(ncid, "dirt", NC_UBYTE, 2, dims, &var));
  CHECK(ncmpi_enddef(ncid));
  for (int row = 0; row < kDirtRows; row += size) {
    const MPI_Offset start[2] = {row + rank, 0}, count[2] = {row + rank < kDirtRows, kDirt};
    CHECK(ncmpi_put_vara_uchar_all(ncid, 0, start, count, dirt));
  }
  CHECK(ncmpi_close(ncid));
}

/* Of each type one variable that is not filled, one that is, and one with a fill value of its own. */
static void define(int ncid, const char *what, int dims, const int *dimids) {
  const signed char byte = 77;
  const short number = 7777;
  const double real = 77.5;
  const void *const values[kTypes] = {&byte, &number, &real};
  for (int type = 0; type < kTypes; type++)
    for (int kind = 0; kind < kKinds; kind++) {
      char name[32];
      int var;
      snprintf(name, sizeof name, "%s_%d_%d", what, type, kind);
      CHECK(ncmpi_def_var(ncid, name, types[type], dims, dimids, &var));
      if (kind > 0) CHECK(ncmpi_def_var_fill(ncid, var, 0, kind == 1 ? NULL : values[type]));
    }
}

static int variables_like(int ncid, const char *what, int *found) {
  int all, count = 0;
  CHECK(ncmpi_inq_nvars(ncid, &all));
  for (int var = 0; var < all; var++) {
    char name[NC_MAX_NAME + 1];
    CHECK(ncmpi_inq_varname(ncid, var, name));
    if (strncmp(name, what, strlen(what)) == 0) found[count++] = var;
  }
  return count;
}

/* Some of the row, or of the record, in pieces with gaps of several sizes; the last third stays as it is. */
static void put_some(int ncid, int var, int record, int step, int width) {
  const MPI_Offset mine = (MPI_Offset)width * rank;
  for (int at = 0, n = 0; at < width * 2 / 3; at += step * (1 + n % 5), n++) {
    const int value = 1 + (at + record + var) % 100, length = step / 2 + 1;
    int values[64];
    for (int i = 0; i < length; i++) values[i] = value;
    const MPI_Offset start[2] = {record, mine + at}, count[2] = {1, at + length <= width ? length : 0};
    if (record < 0)
      CHECK(ncmpi_put_vara_int(ncid, var, start + 1, count + 1, values));
    else
      CHECK(ncmpi_put_vara_int(ncid, var, start, count, values));
  }
}

static void put_somewhere(int ncid, const char *what, int record, int width) {
  int found[64];
  const int count = variables_like(ncid, what, found);
  CHECK(ncmpi_begin_indep_data(ncid));
  for (int i = 0; i < count; i++)
    if ((i + record) % 4 != 3) put_some(ncid, found[i], record, 2 + 7 * (i % 5), width);
  CHECK(ncmpi_end_indep_data(ncid));
}

static void fill_records(int ncid, const char *what, int record) {
  int found[64];
  const int count = variables_like(ncid, what, found);
  for (int i = 0; i < count; i++) {
    const int error = ncmpi_fill_var_rec(ncid, found[i], record);
    if (i < kKinds) say_codes("fill_var_rec", error);
  }
}

/* What is read of a row that nobody has written, or a part of it. */
static void say_sums(int ncid, const char *what, int record, int width) {
  static double row[kRow];
  int found[64];
  const int count = variables_like(ncid, what, found);
  for (int i = 0; i < count; i++) {
    const MPI_Offset start[2] = {record, (MPI_Offset)width * rank}, extent[2] = {1, width};
    double sum = 0;
    const int error = record < 0 ? ncmpi_get_vara_double_all(ncid, found[i], start + 1, extent + 1, row)
                                 : ncmpi_get_vara_double_all(ncid, found[i], start, extent, row);
    for (int at = 0; at < width && error == NC_NOERR; at++) sum += row[at] * (1 + at % 7);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    SAY("%s %d of record %d: %s %.17g\n", what, i, record, ncmpi_strerrno(error), sum);
  }
}

static void write_file(const char *path, int format, int fills) {
  int ncid, t, x, few;
  CHECK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | format, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_set_fill(ncid, fills ? NC_FILL : NC_NOFILL, NULL));
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &t));
  CHECK(ncmpi_def_dim(ncid, "x", (MPI_Offset)kRow * size, &x));
  CHECK(ncmpi_def_dim(ncid, "few", (MPI_Offset)kFew * size, &few));
  define(ncid, "fixed", 1, &x);
  define(ncid, "small", 1, &few);
  define(ncid, "record", 2, (int[]){t, x});
  define(ncid, "narrow", 2, (int[]){t, few});
  CHECK(ncmpi_enddef(ncid));
  put_somewhere(ncid, "fixed", -1, kRow);
  put_somewhere(ncid, "small", -1, kFew);
  put_somewhere(ncid, "record", 0, kRow);
  put_somewhere(ncid, "record", 3, kRow); /* 1 and 2 are skipped */
  fill_records(ncid, "record", 3);        /* what was put is gone */
  fill_records(ncid, "narrow", 2);
  put_somewhere(ncid, "record", 3, kRow); /* anew */
  put_somewhere(ncid, "narrow", 4, kFew);
  pause_at("data", place);
  put_somewhere(ncid, "record", 2, kRow);
  fill_records(ncid, "narrow", 5);
  say_sums(ncid, "fixed", -1, kRow);
  for (int record = 0; record < 4; record++) say_sums(ncid, "record", record, kRow);
  for (int record = 0; record < 6; record++) say_sums(ncid, "narrow", record, kFew);

  CHECK(ncmpi_redef(ncid)); /* the header grows, and all that lies behind it moves */
  for (int i = 0; i < 40; i++) {
    char name[32];
    snprintf(name, sizeof name, "attribute_%d", i);
    CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, name, 26, "as long as the ones before"));
  }
  define(ncid, "late", 1, &x);
  define(ncid, "more", 2, (int[]){t, x});
  CHECK(ncmpi_enddef(ncid));
  pause_at("redef", place);
  put_somewhere(ncid, "late", -1, kRow);
  put_somewhere(ncid, "more", 7, kRow); /* 6 is skipped */
  CHECK(ncmpi_close(ncid));

  CHECK(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_inq_dimid(ncid, "x", &x));
  put_somewhere(ncid, "narrow", 9, kFew);
  CHECK(ncmpi_redef(ncid));
  CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "last", 5, "again"));
  define(ncid, "again", 1, &x);
  CHECK(ncmpi_enddef(ncid));
  put_somewhere(ncid, "again", -1, kRow);
  pause_at("again", place);
  CHECK(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  if (argc > 1) place = argv[1];
  leave_dirt();
  write_file("plain.nc", NC_64BIT_DATA, 0);
  write_file("filled.nc", NC_64BIT_OFFSET, 1);
  MPI_Finalize();
  return 0;
}
