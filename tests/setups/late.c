/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends with files in use by a library: the one that it is linked to (`linked`, or `only` if nothing is opened before),
 * or a plug-in, FILE, that is opened when all that is needed for files is there, and left open. */
#include "late.h"

#include <dlfcn.h>
#include <string.h>

static void call(void *library, const char *name) {
  void (*function)(void) = NULL;
  void *symbol = library == NULL ? NULL : dlsym(library, name);
  if (symbol == NULL) fprintf(stderr, "%s\n", dlerror()), exit(8);
  memcpy(&function, &symbol, sizeof function);
  function();
}

int main(int argc, char **argv) {
  int ncid;
  begin(&argc, &argv);
  if (argc < 2) return 9;
  if (strcmp(argv[1], "only") == 0) return late_begin(), 0;
  if (strcmp(argv[1], "linked") == 0) return late_begin(), late_open(), 0;
  CHECK(ncmpi_create(MPI_COMM_WORLD, "first.nc", NC_CLOBBER, MPI_INFO_NULL, &ncid));
  CHECK(ncmpi_close(ncid));
  void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  call(plugin, "late_begin");
  call(plugin, "late_open");
  return 0;
}
