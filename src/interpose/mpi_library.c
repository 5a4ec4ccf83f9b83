/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mpi_library.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

typedef struct {
  const char *soname;
  const void *us;
  nessie_library *library;
  bool any;
} Search;

static int consider(struct dl_phdr_info *info, size_t size, void *argument) {
  Search *search = argument;
  nessie_library library;
  (void)size;
  if (!nessie_read_library(info, &library) || nessie_is_in(&library, search->us)) return 0;
  if (nessie_defined_in(&library, "PMPI_Init") == NULL) return 0;
  *search->library = library;
  search->any = true;
  return strcmp(library.soname, search->soname) == 0;
}

bool nessie_find_mpi(const char *soname, const void *us, nessie_library *mpi) {
  Search search = {soname, us, mpi, false};
  dl_iterate_phdr(consider, &search);
  return search.any;
}

void *nessie_tool_behind(const nessie_library *mpi, const char *name) {
  void *next = dlsym(RTLD_NEXT, name);
  return next != NULL && !nessie_is_in(mpi, next) ? next : NULL;
}
