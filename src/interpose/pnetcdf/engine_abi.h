/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shim (libnessie_pnetcdf.so) asks of the engine (libnessie_pnetcdf_engine.so), which it opens at run time. */
#ifndef NESSIE_PNETCDF_ENGINE_ABI_H
#define NESSIE_PNETCDF_ENGINE_ABI_H

#ifdef __cplusplus
extern "C" {
#endif

#define NESSIE_PNETCDF_ENGINE_LIBRARY "libnessie_pnetcdf_engine.so"
#define NESSIE_PNETCDF_ENGINE_SYMBOL "nessie_pnetcdf_engine"

typedef void (*nessie_function)(void);

/* Returns the engine's functions, in the order of functions.h, if it was built for `count` of them, otherwise NULL.
 * The table lives as long as the process. */
const nessie_function *nessie_pnetcdf_engine(int count);

#ifdef __cplusplus
}
#endif
#endif
