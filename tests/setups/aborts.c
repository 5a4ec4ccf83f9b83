/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that end with ncmpi_abort, which loses what was defined last and nothing that was put. Argument: the way. */
#include "two_variables.h"

#include <string.h>
#include <unistd.h>

enum { kX = 1000 };

static int create(const char *name) { return create_two_variables(name, kX); }

static int values[kX];
static const int *some(int seed) {
  for (int i = 0; i < kX; i++) values[i] = seed * 1000000 + rank * kX + i;
  return values;
}

static void put(int ncid, int record, int together) {
  const MPI_Offset start[2] = {record, (MPI_Offset)kX * rank}, count[2] = {1, kX};
  CHECK((together ? ncmpi_put_vara_int_all : ncmpi_put_vara_int)(ncid, 0, start + 1, count + 1, some(1)));
  CHECK((together ? ncmpi_put_vara_int_all : ncmpi_put_vara_int)(ncid, 1, start, count, some(2 + record)));
}

static void end(int ncid) {
  const int error = ncmpi_abort(ncid);
  SAY("%s\n", ncmpi_strerrno(error));
}

static void independent(void) { /* the others are already ending it when the last one puts */
  const int ncid = create("out.nc");
  CHECK(ncmpi_begin_indep_data(ncid));
  if (rank == size - 1) usleep(100000);
  put(ncid, rank, 0);
  end(ncid);
}

static void fixed(void) { /* without records, about which processes have to agree */
  int ncid, x, v;
  CHECK(ncmpi_create(MPI_COMM_WORLD, "out.nc", NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", (MPI_Offset)kX * size, &x));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &x, &v));
  CHECK(ncmpi_enddef(ncid));
  CHECK(ncmpi_begin_indep_data(ncid));
  const MPI_Offset start = (MPI_Offset)kX * rank, count = kX;
  if (rank == size - 1) usleep(100000);
  CHECK(ncmpi_put_vara_int(ncid, v, &start, &count, some(3)));
  end(ncid);
}

static void collective(void) {
  const int ncid = create("out.nc");
  put(ncid, 2, 1);
  end(ncid);
}

static void defining_again(void) {
  const int ncid = create("out.nc");
  CHECK(ncmpi_begin_indep_data(ncid));
  put(ncid, rank, 0);
  CHECK(ncmpi_redef(ncid));
  CHECK(ncmpi_put_att_text(ncid, NC_GLOBAL, "lost", 4, "lost"));
  end(ncid);
}

static void pending(void) {
  const int ncid = create("out.nc");
  const MPI_Offset start = (MPI_Offset)kX * rank, count = kX;
  int request;
  put(ncid, 0, 1);
  CHECK(ncmpi_iput_vara_int(ncid, 0, &start, &count, some(9), &request));
  end(ncid);
}

static void only_read(void) {
  int ncid = create("out.nc");
  put(ncid, 0, 1);
  CHECK(ncmpi_close(ncid));
  CHECK(ncmpi_open(MPI_COMM_WORLD, "out.nc", NC_NOWRITE, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_begin_indep_data(ncid));
  end(ncid);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } ways[] = {{"independent", independent},       {"fixed", fixed},     {"collective", collective},
              {"defining_again", defining_again}, {"pending", pending}, {"only_read", only_read}};
  begin(&argc, &argv);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (argc > 1 && strcmp(argv[1], ways[i].name) == 0) ways[i].run();
  MPI_Finalize();
  return 0;
}
