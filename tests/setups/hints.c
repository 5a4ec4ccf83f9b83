/* SPDX-License-Identifier: BSD-3-Clause */
/* Interleaved pieces of many variables with records. Arguments: a hint's key and value, or none. */
#include "setups.h"

#include <string.h>

enum { kVariables = 12, kX = 400, kPairs = kX / 2, kRecords = 3 };

/* What the library says of the hint, if it is one that means the same natively and staged. */
static void tell(int ncid, const char *key) {
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  MPI_Info info;
  CHECK(ncmpi_inq_file_info(ncid, &info));
  MPI_Info_get(info, (char *)key, MPI_MAX_INFO_VAL, value, &found);
  SAY("%s: %s\n", key, found ? value : "unknown");
  MPI_Info_free(&info);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int ncid, dims[2], vars[kVariables], requests[kVariables];
  char name[16];
  MPI_Info info;
  MPI_Info_create(&info);
  if (argc > 2) MPI_Info_set(info, argv[1], argv[2]);
  CHECK(ncmpi_create(MPI_COMM_WORLD, "out.nc", NC_CLOBBER | NC_64BIT_DATA, info, &ncid));
  MPI_Info_free(&info);
  CHECK(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(ncid, "x", (MPI_Offset)kX * size, &dims[1]));
  for (int v = 0; v < kVariables; v++) {
    snprintf(name, sizeof name, "v%d", v);
    CHECK(ncmpi_def_var(ncid, name, NC_DOUBLE, 2, dims, &vars[v]));
  }
  CHECK(ncmpi_enddef(ncid));
  static MPI_Offset starts[kPairs][2], counts[kPairs][2], *start[kPairs], *count[kPairs];
  static double data[kVariables][kX], back[kX];
  long wrong = 0;
  for (int t = 0; t < kRecords; t++) {
    for (int p = 0; p < kPairs; p++) {
      start[p] = starts[p], count[p] = counts[p];
      starts[p][0] = t, starts[p][1] = 2 * ((MPI_Offset)p * size + rank), counts[p][0] = 1, counts[p][1] = 2;
    }
    for (int v = 0; v < kVariables; v++) {
      for (int i = 0; i < kX; i++) data[v][i] = 1 + rank + 10 * v + 1000 * t;
      CHECK(ncmpi_iput_varn_double(ncid, vars[v], kPairs, start, count, data[v], &requests[v]));
    }
    CHECK(ncmpi_wait_all(ncid, kVariables, requests, NULL));
    CHECK(ncmpi_get_varn_double_all(ncid, vars[t], kPairs, start, count, back));
    for (int i = 0; i < kX; i++) wrong += back[i] != data[t][i];
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  SAY("%ld wrong\n", wrong);
  if (argc > 2) tell(ncid, argv[1]);
  CHECK(ncmpi_close(ncid));
  MPI_Finalize();
  return 0;
}
