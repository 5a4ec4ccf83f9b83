/* SPDX-License-Identifier: BSD-3-Clause */
/* The shim decides, for each call of a ncmpi_ function, who answers: the engine or native PnetCDF. */
#ifndef NESSIE_PNETCDF_SHIM_H
#define NESSIE_PNETCDF_SHIM_H

#include "../engine_abi.h"

#define NESSIE_EXPORT __attribute__((visibility("default")))

/* Returns the function that answers a call of function number `index`. Sets *entered if that is the engine's; until
 * nessie_shim_leave, what this thread calls is native: PnetCDF calls some of its own public functions, and the engine
 * calls PnetCDF. */
nessie_function nessie_shim_enter(int index, int *entered);
void nessie_shim_leave(int entered);

#endif
