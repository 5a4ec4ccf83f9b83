/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. Preloaded into anything: it needs libc only, and does nothing where no MPI begins. A program calls
 * MPI_X, or, in Fortran, something that calls PMPI_X. A tool that is preloaded behind us is to see the program's MPI_X;
 * it goes on to PMPI_X, which is ours again. */
#define _GNU_SOURCE
#include "embedded_abi.h"

#include <base/say.h>
#include <interpose/beside.h>
#include <interpose/mpi_library.h>

#include <mpi.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The C library's. What a library registers at its start, for no library, is called after the end of all libraries,
 * as that is registered when the program itself starts. */
int __cxa_atexit(void (*function)(void *), void *argument, void *library);

#define EXPORT __attribute__((visibility("default")))

typedef void (*Function)(void);

static int servers; /* 0: this process does without */
static int speech = -1;
static const nessie_embedded_job *job; /* NULL: MPI has not begun, or is over */
static pid_t job_pid;                  /* whose it is: not a child's */
static const nessie_embedded_servers *_Atomic where;

static Function as_function(void *symbol) {
  Function function;
  memcpy(&function, &symbol, sizeof function);
  return function;
}

static void say(const char *text, const char *detail) {
  char sentence[512];
  const int length = snprintf(sentence, sizeof sentence, "nessie: %s%s\n", text, detail);
  if (length > 0) nessie_say(speech, sentence, strlen(sentence));
}

/* --- what is behind us -------------------------------------------------------------------------------------------------- */

/* The MPI's own function. */
static Function of_mpi(const char *name) {
  nessie_library mpi;
  void *symbol = nessie_find_mpi(NESSIE_MPI_SONAME, (const void *)&of_mpi, &mpi) ? nessie_defined_in(&mpi, name) : NULL;
  if (symbol != NULL) return as_function(symbol);
  say("there is no MPI that has ", name);
  exit(127); /* what the dynamic linker does about a missing symbol */
}

static Function of_tool(const char *name) {
  nessie_library mpi;
  const bool is_there = nessie_find_mpi(NESSIE_MPI_SONAME, (const void *)&of_mpi, &mpi);
  void *tool = is_there ? nessie_tool_behind(&mpi, name) : NULL;
  return tool == NULL ? NULL : as_function(tool);
}

static bool is_ours(void) {
  nessie_library mpi;
  return nessie_find_mpi(NESSIE_MPI_SONAME, (const void *)&of_mpi, &mpi) && strcmp(mpi.soname, NESSIE_MPI_SONAME) == 0;
}

/* --- the job's servers ---------------------------------------------------------------------------------------------------- */

static const nessie_embedded_job *open_server_library(void) {
  char path[4096];
  if (!nessie_path_beside(&servers, NESSIE_EMBEDDED_SERVER_LIBRARY, path, sizeof path)) return NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void *symbol = library == NULL ? NULL : dlsym(library, NESSIE_EMBEDDED_JOB_SYMBOL);
  const nessie_embedded_job *(*functions)(void) = NULL;
  if (symbol != NULL) memcpy(&functions, &symbol, sizeof functions);
  return functions == NULL ? NULL : functions();
}

static Function of_shim(const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  return symbol == NULL ? NULL : as_function(symbol);
}

static void have_shim(const char *function) {
  const Function found = of_shim(function);
  if (found != NULL) found();
}

/* The number of a process that is not in front of its MPI and PnetCDF as this one is; -1: none, as far as is known. */
static int missing_rank(void) {
  const Function found = of_shim(NESSIE_PNETCDF_MISSING_SYMBOL);
  return found == NULL ? -1 : ((int (*)(void))found)();
}

static void ending(void) {
  job = NULL;
  have_shim(NESSIE_PNETCDF_FINISH_SYMBOL);
}

/* All processes of a job do the same here: what follows is collective. */
static void begin(void) {
  static char why[512] = "the program's MPI is not the one that Nessie was built for";
  static const nessie_embedded_servers none = {NULL, NULL, why};
  const int missing = missing_rank();
  if (missing >= 0) {
    (void)snprintf(why, sizeof why, "process %d of the job on this node runs without Nessie's libraries", missing);
  } else if (is_ours()) {
    job = open_server_library();
    const char *reason = job == NULL ? dlerror() : NULL;
    (void)snprintf(why, sizeof why, "%s", reason == NULL ? NESSIE_EMBEDDED_SERVER_LIBRARY " cannot be opened" : reason);
  }
  job_pid = getpid();
  atomic_store(&where, job == NULL ? &none : job->begin(servers, speech, ending));
}

EXPORT const nessie_embedded_servers *nessie_embedded_where(void) { return atomic_load(&where); }

/* Not in a child of fork(): the servers are its parent's. */
static void leave(void) {
  const nessie_embedded_job *left = getpid() == job_pid ? job : NULL;
  job = NULL;
  if (left != NULL) left->leave();
}

/* Destructors of the program's libraries may have used files, and finalized MPI. */
static void leave_at_last(void *unused) {
  (void)unused;
  leave();
}

__attribute__((constructor)) static void look_around(void) {
  const char *value = getenv("NESSIE_SERVERS");
  const size_t scheme = strlen(NESSIE_EMBEDDED_SCHEME);
  if (value != NULL && strncmp(value, NESSIE_EMBEDDED_SCHEME, scheme) == 0) servers = atoi(value + scheme);
  if (fcntl(STDERR_FILENO, F_GETFD) != -1) speech = STDERR_FILENO;
  if (servers > 0) __cxa_atexit(leave_at_last, NULL, NULL);
}

/* --- MPI ------------------------------------------------------------------------------------------------------------------ */

EXPORT int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  typedef int (*Init)(int *, char ***, int, int *);
  const int level = servers > 0 ? MPI_THREAD_MULTIPLE : required;
  if (servers > 0) (void)missing_rank();
  const int code = ((Init)of_mpi("PMPI_Init_thread"))(argc, argv, level, provided);
  if (servers > 0 && code == MPI_SUCCESS) begin();
  return code;
}

EXPORT int PMPI_Init(int *argc, char ***argv) {
  typedef int (*Init)(int *, char ***);
  int provided = 0;
  if (servers > 0) return PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  return ((Init)of_mpi("PMPI_Init"))(argc, argv);
}

EXPORT int PMPI_Abort(MPI_Comm comm, int code) {
  if (servers > 0) have_shim(NESSIE_PNETCDF_SETTLE_SYMBOL);
  leave();
  return ((int (*)(MPI_Comm, int))of_mpi("PMPI_Abort"))(comm, code);
}

EXPORT int MPI_Init(int *argc, char ***argv) {
  typedef int (*Init)(int *, char ***);
  const Init tool = (Init)of_tool("MPI_Init");
  return tool != NULL ? tool(argc, argv) : PMPI_Init(argc, argv);
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  typedef int (*Init)(int *, char ***, int, int *);
  const Init tool = (Init)of_tool("MPI_Init_thread");
  return tool != NULL ? tool(argc, argv, required, provided) : PMPI_Init_thread(argc, argv, required, provided);
}

EXPORT int MPI_Abort(MPI_Comm comm, int code) {
  typedef int (*Abort)(MPI_Comm, int);
  const Abort tool = (Abort)of_tool("MPI_Abort");
  return tool != NULL ? tool(comm, code) : PMPI_Abort(comm, code);
}
