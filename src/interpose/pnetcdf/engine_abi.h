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

typedef struct {
  const nessie_function *functions; /* in the order of functions.h */
  void (*finish)(void);             /* the last thing that happens in the process: waits for its files to be written */
} nessie_engine;

/* Returns the engine, if it was built for `count` functions, otherwise NULL. `native` gives the native function of a
 * number. What is returned lives as long as the process. */
const nessie_engine *nessie_pnetcdf_engine(int count, nessie_function (*native)(int));

#ifdef __cplusplus
}
#endif
#endif
