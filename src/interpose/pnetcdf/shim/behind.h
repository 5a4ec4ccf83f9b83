/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that come behind ours of the same name: the C library's, or a preloaded tool's. */
#ifndef NESSIE_PNETCDF_BEHIND_H
#define NESSIE_PNETCDF_BEHIND_H

#include "inside.h"
#include "library.h"

#include <dlfcn.h>
#include <string.h>

/* Looked up before main(): dlsym waits for the dynamic linker's lock, which may be held by who waits for our caller,
 * and makes dlerror() forget what it was to say. Only what is called still earlier is looked up when it is called. */
#define REAL(name)                                                                   \
  static __typeof__(&name) real_##name;                                              \
  __attribute__((constructor)) static void find_##name(void) {                       \
    void *symbol = real_##name == NULL ? nessie_real_dlsym(RTLD_NEXT, #name) : NULL; \
    if (symbol != NULL) memcpy(&real_##name, &symbol, sizeof symbol);                \
  }                                                                                  \
  static __typeof__(&name) behind_##name(void) {                                     \
    if (real_##name == NULL) find_##name();                                          \
    return real_##name;                                                              \
  }

/* What is not there cannot be called: an old C library has no such function either. */
#define BEHIND(name) behind_##name()

/* A function of ours that does something first. */
#define AFTER(something, type, name, declaration, arguments) \
  REAL(name)                                                 \
  NESSIE_EXPORT type name declaration {                      \
    something;                                               \
    return BEHIND(name) arguments;                           \
  }

#endif
