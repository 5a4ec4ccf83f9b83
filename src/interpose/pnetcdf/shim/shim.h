/* SPDX-License-Identifier: BSD-3-Clause */
/* The shim decides, for each call of a ncmpi_ function, who answers: the engine, a tool that is preloaded behind us, or
 * native PnetCDF. */
#ifndef NESSIE_PNETCDF_SHIM_H
#define NESSIE_PNETCDF_SHIM_H

#include "../engine_abi.h"
#include "inside.h"

/* Returns the function that answers a call of function number `index` from `caller`, and sets *entered to what
 * nessie_shim_leave is to be given after it. While the engine runs, what PnetCDF calls on this thread is native: some
 * of its own public functions. What anybody else calls, and names a file, is refused: NULL. */
nessie_function nessie_shim_enter(int index, int *entered, const void *caller);
void nessie_shim_leave(int entered);

/* The descriptor for sentences to the user: stderr's; -1 if the process was started without, and a file of the
 * program's may be there. */
int nessie_shim_speech(void);

/* The number of a function of this name; -1: none. */
int nessie_shim_index(const char *name);
/* Our entry point for it. */
void *nessie_shim_entry(int index);
/* Its name behind a NESSIE_MARK, under which nobody has a function. */
#define NESSIE_MARK "?"
const char *nessie_shim_marked_name(int index);

/* Notes, once, that the program has another PnetCDF as well. */
void nessie_shim_note_other(void);

#endif
