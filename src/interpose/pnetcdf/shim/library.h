/* SPDX-License-Identifier: BSD-3-Clause */
/* The native PnetCDF of this process, and who else stands between it and the program. */
#ifndef NESSIE_PNETCDF_LIBRARY_H
#define NESSIE_PNETCDF_LIBRARY_H

#include <stdbool.h>

/* dlsym as the C library has it; this library stands in front of it, too (lookup.c). */
void *nessie_real_dlsym(void *handle, const char *name);

/* Whether native PnetCDF is loaded. Nothing is loaded by asking. */
bool nessie_has_native(void);
/* Loads the PnetCDF that we were built for if there is none. Returns NULL, or why that cannot be. */
const char *nessie_load_native(void);
/* Its function of this name; NULL: there is none. */
void *nessie_native_function(const char *name);
/* Whether an address lies in that library; false as long as none is known. */
bool nessie_is_native(const void *address);
/* Whether a call from `address`, within the native library, is native PnetCDF's own business: its Fortran and C++ faces
 * lie there as well, and their calls are the program's. */
bool nessie_is_native_inside(const void *address);
/* What dlsym(RTLD_NEXT, name) gives who calls from here; NULL: nothing. */
const void *nessie_next_function(const void *caller, const char *name);

/* Whether the library that calls from here comes with another PnetCDF than the native one, as plug-ins do; its function
 * of this name. */
bool nessie_has_other(const void *caller);
void *nessie_other_function(const void *caller, const char *name);
/* Whether a function of PnetCDF's is another's than the native one, which the program has all to itself. */
bool nessie_is_of_other(const void *function);
/* What that PnetCDF calls itself never comes to us from now on. */
void nessie_part_other(const void *function);

/* Whether the MPI that the engine was built for is loaded. */
bool nessie_has_mpi(void);
/* Whether the program has PnetCDF inside, and calls that instead of us. */
bool nessie_has_pnetcdf_inside(void);

/* NULL if this process's MPI and PnetCDF are those that the engine was built for; otherwise a sentence that says which
 * are not. */
const char *nessie_foreign_library(void);

#endif
