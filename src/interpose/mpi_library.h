/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI of a process, for libraries that stand in front of it and are not linked to one. */
#ifndef NESSIE_INTERPOSE_MPI_LIBRARY_H
#define NESSIE_INTERPOSE_MPI_LIBRARY_H

#include "symbols.h"

#include <stdbool.h>

/* The MPI that is loaded, other than the library that has the address `us`; of several the one that is called `soname`.
 * False: none is. */
bool nessie_find_mpi(const char *soname, const void *us, nessie_library *mpi);

/* The function of a tool that would get the program's call if the library that asks were not here; NULL: there is none.
 */
void *nessie_tool_behind(const nessie_library *mpi, const char *name);

#endif
