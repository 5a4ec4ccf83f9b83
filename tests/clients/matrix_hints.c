/* SPDX-License-Identifier: BSD-3-Clause */
/* What ncmpi_inq_file_info says of the hints, from create to a reopened file. */
#include "matrix.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

/* In alphabetical order: the order of an MPI_Info's keys means nothing. */
static void show_hints(const char *when, int id, int (*ask)(int, MPI_Info *)) {
  enum { kMostKeys = 64, kLine = MPI_MAX_INFO_KEY + MPI_MAX_INFO_VAL + 8 };
  static char lines[kMostKeys][kLine];
  MPI_Info info = MPI_INFO_NULL;
  int keys = 0;
  show(when, ask(id, &info));
  if (info == MPI_INFO_NULL) return;
  MPI_Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys && i < kMostKeys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    int found = 0;
    MPI_Info_get_nthkey(info, i, key);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    snprintf(lines[i], sizeof lines[i], "%s=%s", key, found ? value : "");
  }
  qsort(lines, (size_t)keys, sizeof *lines, by_text);
  for (int i = 0; i < keys && i < kMostKeys; ++i) fprintf(out, "  %s\n", lines[i]);
  MPI_Info_free(&info);
}

static void show_all(const char *when, int id) {
  int unit = -1, count = -1;
  show_hints(when, id, ncmpi_inq_file_info);
  show_hints("by the deprecated name", id, ncmpi_get_file_info);
  CALL(ncmpi_inq_striping(id, &unit, &count));
  show_number("unit", unit), show_number("count", count);
}

static void life_of_a_file(int format, MPI_Info info) {
  int id = -1, dims[2], v, r;
  CALL(ncmpi_create(MPI_COMM_WORLD, file_path("hints"), NC_CLOBBER | format, info, &id));
  show_all("new", id);
  CALL(ncmpi_def_dim(id, "t", NC_UNLIMITED, &dims[0]));
  CALL(ncmpi_def_dim(id, "x", 1000, &dims[1]));
  CALL(ncmpi_def_var(id, "v", NC_DOUBLE, 1, &dims[1], &v));
  CALL(ncmpi_def_var(id, "r", NC_INT, 2, dims, &r));
  show_all("defined", id);
  CALL(ncmpi_enddef(id));
  show_all("data mode", id);
  CALL(ncmpi_redef(id));
  show_all("redefined", id);
  CALL(ncmpi_def_var(id, "w", NC_SHORT, 1, &dims[1], &v));
  CALL(ncmpi__enddef(id, 2048, 256, 0, 128));
  show_all("laid out", id);
  CALL(ncmpi_close(id));
  CALL(ncmpi_open(MPI_COMM_WORLD, file_path("hints"), NC_WRITE, info, &id));
  show_all("opened", id);
  CALL(ncmpi_close(id));
}

void hints(int format) {
  MPI_Info info;
  life_of_a_file(format, MPI_INFO_NULL);
  MPI_Info_create(&info);
  MPI_Info_set(info, "nc_header_align_size", "1023");
  MPI_Info_set(info, "nc_var_align_size", "200");
  MPI_Info_set(info, "nc_record_align_size", "-5");
  MPI_Info_set(info, "nc_in_place_swap", "enable");
  MPI_Info_set(info, "striping_unit", "65536");
  MPI_Info_set(info, "romio_ds_write", "enable");
  life_of_a_file(format, info);
  MPI_Info_set(info, "nc_header_align_size", "99999999999999999999");
  MPI_Info_set(info, "nc_var_align_size", "much");
  life_of_a_file(format, info);
  MPI_Info_free(&info);
}
