/* SPDX-License-Identifier: BSD-3-Clause */
/* What one loaded library defines, and what it asks others for: read from the tables of its file, as they are in
 * memory. dlsym would look into other libraries as well, and would forget the program's dlerror(). */
#ifndef NESSIE_INTERPOSE_SYMBOLS_H
#define NESSIE_INTERPOSE_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char *file;   /* empty: the program itself */
  const char *soname; /* empty: it has none */
  uintptr_t base, begin, end;
  const ElfW(Sym) * symbols;
  const char *names;
  const uint32_t *gnu_hash, *hash; /* either may be NULL */
  struct {
    const ElfW(Rela) * first;
    size_t size_bytes;
  } relocations[2];                   /* of data, and of calls */
  uintptr_t sealed_begin, sealed_end; /* what the dynamic linker protects once it has filled it in */
} nessie_library;

/* Whether a library, as dl_iterate_phdr() shows it, has tables of symbols; then *library is filled in, and valid as
 * long as it is loaded. */
bool nessie_read_library(const struct dl_phdr_info *info, nessie_library *library);

bool nessie_is_in(const nessie_library *library, const void *address);

/* The address of a function that the library itself defines and exports; NULL: it does not. */
void *nessie_defined_in(const nessie_library *library, const char *name);

/* Functions of its own whose names begin with `prefix`, and that the dynamic linker has let the library find elsewhere,
 * are its own again. Only for a library that is loaded, not one that is being loaded; by one thread at a time. */
void nessie_find_own(const nessie_library *library, const char *prefix);

/* What the library looks for elsewhere, it finds where `place` says for its name; NULL: where it did. As
 * nessie_find_own(). */
void nessie_find_elsewhere(const nessie_library *library, void *(*place)(const char *name, void *state), void *state);

/* Whether the library calls a function of this name that another one is to define. */
bool nessie_is_asked_for_by(const nessie_library *library, const char *name);

#ifdef __cplusplus
}
#endif

#endif
