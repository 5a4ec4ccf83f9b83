/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses by an MPI filetype: of whole elements, and of others, which go to the file past all staging. Arguments: the
 * way, a name, and what becomes of that, or of the file's mode, while the file is open. */
#include "no_elements.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kX = 64 };
static const char *name, *loss = "";

static int create(void) {
  int ncid, dim, var;
  CHECK(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_def_dim(ncid, "x", (MPI_Offset)kX * size, &dim));
  CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
  CHECK(ncmpi_def_var(ncid, "w", NC_INT, 1, &dim, &var));
  CHECK(ncmpi_enddef(ncid));
  return ncid;
}

static int values[kX];
static int *some(int seed) {
  for (int i = 0; i < kX; i++) values[i] = seed * 10000 + rank * kX + i;
  return values;
}

static int put(int ncid, int var, int seed) {
  const MPI_Offset start = (MPI_Offset)kX * rank, count = kX;
  return ncmpi_put_vara_int(ncid, var, &start, &count, some(seed));
}

/* By a filetype, within this process's part of variable 0. */
static int by_filetype(int ncid, int put, int together, int *data) {
  MPI_Datatype type = integers_across((MPI_Aint)4 * kX * rank + 2, kX - 1);
  const int error = put ? (together ? ncmpi_put_vard_all : ncmpi_put_vard)(ncid, 0, type, data, kX - 1, MPI_INT)
                        : (together ? ncmpi_get_vard_all : ncmpi_get_vard)(ncid, 0, type, data, kX - 1, MPI_INT);
  MPI_Type_free(&type);
  return error;
}

static void say(const char *what, int error) {
  int worst = 0;
  MPI_Allreduce(&error, &worst, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  SAY("%s: %s\n", what, ncmpi_strerrno(worst));
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) perror(path);
}

static int is_lost(const char *how) { return strcmp(loss, how) == 0; }

/* The file is not to be had by its name any more, at least not by its user. */
static void lose(void) {
  int failed = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && (is_lost("renamed") || is_lost("replaced"))) failed |= rename(name, "elsewhere.nc");
  if (rank == 0 && is_lost("replaced")) write_text(name, "somebody else's\n");
  if (rank == 0 && is_lost("removed")) failed |= unlink(name);
  if (rank == 0 && is_lost("closed")) failed |= chmod(name, 0);
  if (failed != 0) perror(loss);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void independent(void) {
  const int ncid = create();
  int back[kX] = {0};
  CHECK(ncmpi_begin_indep_data(ncid));
  say("put", put(ncid, 1, 1));
  lose();
  say("put by filetype", by_filetype(ncid, 1, 0, some(2)));
  say("get by filetype", by_filetype(ncid, 0, 0, back));
  SAY("%d\n", back[5]);
  CHECK(ncmpi_close(ncid));
}

static int get(int ncid, int var, int *data) {
  const MPI_Offset start = (MPI_Offset)kX * rank, count = kX;
  return ncmpi_get_vara_int_all(ncid, var, &start, &count, data);
}

static void reading(void) {
  int ncid = create(), back[kX] = {0};
  const MPI_Offset start = (MPI_Offset)kX * rank, count = kX;
  CHECK(ncmpi_put_vara_int_all(ncid, 0, &start, &count, some(5)));
  CHECK(ncmpi_close(ncid));
  CHECK(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &ncid));
  lose();
  say("put by filetype", by_filetype(ncid, 1, 1, some(6)));
  say("get by filetype", by_filetype(ncid, 0, 1, back));
  SAY("%d\n", back[5]);
  say("put by filetype", by_filetype(ncid, 1, 1, some(7)));
  CHECK(ncmpi_close(ncid));
}

/* Of the second halves of both variables in one, which are not of this process only. */
static void elements(void) {
  const int ncid = create();
  const MPI_Offset start = (MPI_Offset)kX * rank, count = kX;
  const int lengths[2] = {kX / 2, kX / 2}, begins[2] = {kX * rank + kX / 2, kX * (size + rank) + kX / 2};
  int back[kX] = {0};
  MPI_Datatype type;
  MPI_Type_indexed(2, lengths, begins, MPI_INT, &type);
  MPI_Type_commit(&type);
  CHECK(ncmpi_put_vara_int_all(ncid, 0, &start, &count, some(1)));
  CHECK(ncmpi_put_vara_int_all(ncid, 1, &start, &count, some(2)));
  say("put by filetype", ncmpi_put_vard_all(ncid, 0, type, some(3), kX, MPI_INT));
  say("get by filetype", ncmpi_get_vard_all(ncid, 0, type, back, kX, MPI_INT));
  SAY("%d %d\n", back[0], back[kX - 1]);
  CHECK(ncmpi_begin_indep_data(ncid));
  say("put by filetype", ncmpi_put_vard(ncid, 0, type, some(4), kX, MPI_INT));
  say("get by filetype", ncmpi_get_vard(ncid, 0, type, back, kX, MPI_INT));
  SAY("%d %d\n", back[0], back[kX - 1]);
  CHECK(ncmpi_end_indep_data(ncid));
  MPI_Type_free(&type);
  say("get", get(ncid, 1, back));
  SAY("%d %d\n", back[0], back[kX - 1]);
  CHECK(ncmpi_close(ncid));
}

/* In independent mode native PnetCDF would open the name anew. */
static void together(void) {
  const int ncid = create();
  int back[kX] = {0};
  const MPI_Offset start = (MPI_Offset)kX * rank, count = kX;
  CHECK(ncmpi_put_vara_int_all(ncid, 1, &start, &count, some(9)));
  lose();
  say("put by filetype", by_filetype(ncid, 1, 1, some(3)));
  say("get by filetype", by_filetype(ncid, 0, 1, back));
  SAY("%d\n", back[5]);
  say("get", get(ncid, 1, back));
  SAY("%d\n", back[5]);
  say("put", ncmpi_put_vara_int_all(ncid, 1, &start, &count, some(4)));
  CHECK(ncmpi_close(ncid));
}

/* Handed back, the file is opened once more when independent mode begins: not whatever has its descriptor's number. */
static void other_files(void) {
  const int ncid = create();
  const MPI_Offset start = (MPI_Offset)kX * rank, count = kX;
  int others[8];
  CHECK(ncmpi_put_vara_int_all(ncid, 1, &start, &count, some(9)));
  say("put by filetype", by_filetype(ncid, 1, 1, some(3)));
  for (int i = 0; i < 8; i++) {
    char other[32];
    snprintf(other, sizeof other, "other%d.%d", i, rank);
    others[i] = open(other, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (others[i] < 0 || write(others[i], "do not touch\n", 13) != 13) perror(other);
  }
  CHECK(ncmpi_begin_indep_data(ncid));
  say("put", put(ncid, 1, 4));
  CHECK(ncmpi_end_indep_data(ncid));
  for (int i = 0; i < 8; i++) close(others[i]);
  CHECK(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } ways[] = {{"elements", elements},
              {"independent", independent},
              {"other_files", other_files},
              {"reading", reading},
              {"together", together}};
  begin(&argc, &argv);
  if (argc < 3) return 2;
  name = argv[2];
  if (argc > 3) loss = argv[3];
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (strcmp(argv[1], ways[i].name) == 0) ways[i].run();
  MPI_Finalize();
  return 0;
}
