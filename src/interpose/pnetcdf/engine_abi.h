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
  void (*finish)(void);             /* the process is about to end: waits for its files to be written */
  int (*is_native_at_work)(void);   /* whether it has just called native PnetCDF, on this thread */
} nessie_engine;

struct nessie_board;
struct nessie_board_writes;

/* The staging servers' boards that this process sees. */
typedef struct {
  const struct nessie_board *const *boards;
  struct nessie_board_writes *const *writes; /* of each; NULL: cannot be seen */
  int may_write;                             /* whether `writes` can be raised */
  int count;
} nessie_boards;

/* What the shim has for the engine. */
typedef struct {
  nessie_function (*native)(int); /* the native function of a number */
  const nessie_boards *boards;
  int speech;                             /* the descriptor for sentences to the user; -1: none */
  const char *servers, *credential, *job; /* as the process found them in its environment; NULL: not there */
} nessie_shim;

/* Returns the engine, if it was built for `count` functions, otherwise NULL. What either has of the other lives
 * as long as the process. */
const nessie_engine *nessie_pnetcdf_engine(int count, const nessie_shim *shim);

#ifdef __cplusplus
}
#endif
#endif
