/* SPDX-License-Identifier: BSD-3-Clause */
/* What the libraries of a program with servers in its own processes ask of each other. */
#ifndef NESSIE_EMBEDDED_ABI_H
#define NESSIE_EMBEDDED_ABI_H

#ifdef __cplusplus
extern "C" {
#endif

/* How NESSIE_SERVERS says that a job has servers of its own; behind it stands how many. */
#define NESSIE_EMBEDDED_SCHEME "embedded:"

typedef struct {
  const char *urls;       /* of all servers, separated by blanks; NULL: there are none */
  const char *credential; /* that they ask for */
  const char *why;        /* why there are none */
} nessie_embedded_servers;

/* --- libnessie_embedded_server.so, for libnessie_embedded.so, which opens it when MPI has begun ------------------------ */

#define NESSIE_EMBEDDED_SERVER_LIBRARY "libnessie_embedded_server.so"
#define NESSIE_EMBEDDED_JOB_SYMBOL "nessie_embedded_job_functions"

typedef struct {
  /* Collective, after MPI_Init: starts the job's servers, at most `servers`. Tells where they are; that lives for ever.
   * Sentences to the user go to the descriptor `speech`; -1: nowhere. They end in MPI_Finalize, as the last that
   * happens there before MPI itself ends; `ending` is called then, and returns when this process asks them for nothing
   * more. */
  const nessie_embedded_servers *(*begin)(int servers, int speech, void (*ending)(void));
  /* At the end of a process without MPI_Finalize: ends those that are in it. */
  void (*leave)(void);
} nessie_embedded_job;

const nessie_embedded_job *nessie_embedded_job_functions(void);

/* --- libnessie_embedded.so, for the engine, which looks it up ----------------------------------------------------------- */

#define NESSIE_EMBEDDED_WHERE_SYMBOL "nessie_embedded_where"

/* Where this process's servers are. NULL: MPI has not begun by way of this library. */
const nessie_embedded_servers *nessie_embedded_where(void);

/* How the SONAME of the servers' PnetCDF begins, which is nobody else's. */
#define NESSIE_EMBEDDED_PNETCDF "own"

/* --- libnessie_pnetcdf.so, for both, which look it up ------------------------------------------------------------------- */

#define NESSIE_PNETCDF_SERVE_SYMBOL "nessie_pnetcdf_serve"
#define NESSIE_PNETCDF_FINISH_SYMBOL "nessie_pnetcdf_finish"
#define NESSIE_PNETCDF_SETTLE_SYMBOL "nessie_pnetcdf_settle"
#define NESSIE_PNETCDF_MISSING_SYMBOL "nessie_pnetcdf_missing_rank"

/* From now on this thread is a server's: nobody waits for what it does with files, or stages it. */
void nessie_pnetcdf_serve(void);
/* The process will use no more staged files while its MPI lasts: waits until those that it used are written. */
void nessie_pnetcdf_finish(void);
/* Waits until all that the servers of this node have is written, as far as they give a sign of life. */
void nessie_pnetcdf_settle(void);
/* Says that this process has the library, if it is one of an MPI job. The number of one on this node that has not said
 * so; -1: none, or not known. All that have it have said so when MPI_Init returns, if they do before. */
int nessie_pnetcdf_missing_rank(void);

#ifdef __cplusplus
}
#endif
#endif
