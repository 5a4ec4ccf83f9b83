/* SPDX-License-Identifier: BSD-3-Clause */
/* What one loaded library defines, and what it asks others for: read from the tables of its file, as they are in
 * memory. dlsym would look into other libraries as well, and would forget the program's dlerror(). */
#ifndef NESSIE_PNETCDF_SYMBOLS_H
#define NESSIE_PNETCDF_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  const char *file;   /* empty: the program itself */
  const char *soname; /* empty: it has none */
  uintptr_t base, begin, end;
  const ElfW(Sym) * symbols;
  const char *names;
  const uint32_t *gnu_hash, *hash; /* either may be NULL */
} nessie_library;

/* Whether a library, as dl_iterate_phdr() shows it, has tables of symbols; then *library is filled in, and valid as
 * long as it is loaded. */
bool nessie_read_library(const struct dl_phdr_info *info, nessie_library *library);

bool nessie_is_in(const nessie_library *library, const void *address);

/* The address of a function that the library itself defines and exports; NULL: it does not. */
void *nessie_defined_in(const nessie_library *library, const char *name);

/* Whether the library calls a function of this name that another one is to define. */
bool nessie_is_asked_for_by(const nessie_library *library, const char *name);

#endif
