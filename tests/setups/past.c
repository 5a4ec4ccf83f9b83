/* SPDX-License-Identifier: BSD-3-Clause */
/* Two files that are open at the same time: one is made by the functions that the program is linked to, one by those
 * that it looks up in the library. */
#include "setups.h"

#include <dlfcn.h>
#include <string.h>

static __typeof__(&ncmpi_create) create;
static __typeof__(&ncmpi_def_dim) def_dim;
static __typeof__(&ncmpi_inq_dimlen) inq_dimlen;
static __typeof__(&ncmpi_close) close_file;

static void find(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) MPI_Abort(MPI_COMM_WORLD, 4);
  memcpy(function, &symbol, sizeof symbol);
}

int main(int argc, char **argv) {
  int looked_up, linked, dim, var;
  MPI_Offset length = 0;
  begin(&argc, &argv);
  void *library = dlopen(argv[1], RTLD_LAZY);
  find(library, "ncmpi_create", &create);
  find(library, "ncmpi_def_dim", &def_dim);
  find(library, "ncmpi_inq_dimlen", &inq_dimlen);
  find(library, "ncmpi_close", &close_file);
  CHECK(create(MPI_COMM_WORLD, "looked_up.nc", NC_CLOBBER, MPI_INFO_NULL, &looked_up));
  CHECK(ncmpi_create(MPI_COMM_WORLD, "linked.nc", NC_CLOBBER, MPI_INFO_NULL, &linked));
  CHECK(def_dim(looked_up, "x", 3, &dim));
  CHECK(ncmpi_def_dim(linked, "x", 4, &dim));
  CHECK(inq_dimlen(looked_up, dim, &length));
  SAY("%d: %lld\n", looked_up, (long long)length);
  CHECK(ncmpi_inq_dimlen(linked, dim, &length));
  SAY("%d: %lld\n", linked, (long long)length);
  CHECK(ncmpi_def_var(linked, "v", NC_DOUBLE, 1, &dim, &var));
  CHECK(ncmpi_enddef(linked));
  CHECK(ncmpi_put_var_double_all(linked, var, (double[]){1, 2, 3, 4}));
  CHECK(close_file(looked_up));
  CHECK(ncmpi_close(linked));
  SAY("closed: %d\n", ncmpi_inq_dimlen(looked_up, dim, &length));
  MPI_Finalize();
  return 0;
}
