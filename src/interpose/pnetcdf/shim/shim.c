/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. This library may be preloaded into anything: shells, launchers, interpreters, programs that never call
 * PnetCDF. So it needs libc only, does nothing until the first call of a ncmpi_ function, and looks native functions up
 * when they are called: an extension of an interpreter loads libpnetcdf long after this library. */
#define _GNU_SOURCE
#include "shim.h"

#include "functions.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NESSIE_NAME(name) #name,
static const char *const function_names[] = {NESSIE_PNETCDF_FUNCTIONS(NESSIE_NAME)};
#undef NESSIE_NAME

static _Atomic(nessie_function) native_functions[NESSIE_PNETCDF_FUNCTION_COUNT];
static const nessie_function *engine_functions; /* NULL: transparent */
static pthread_once_t engine_once = PTHREAD_ONCE_INIT;
static __thread int inside;

/* Says it on one process of a job only, as far as the launcher tells which one this is. */
static void notice(const char *text, const char *detail) {
  static const char *const rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; ++i) {
    const char *rank = getenv(rank_variables[i]);
    if (rank != NULL && strcmp(rank, "0") != 0) return;
  }
  fprintf(stderr, "nessie: %s: %s\n", text, detail);
}

static nessie_function as_function(void *symbol) {
  nessie_function function;
  memcpy(&function, &symbol, sizeof function);
  return function;
}

static nessie_function find_native(const char *name) {
  void *symbol = dlsym(RTLD_NEXT, name);
  if (symbol == NULL) {
    void *library = dlopen(NESSIE_PNETCDF_SONAME, RTLD_LAZY | RTLD_LOCAL);
    if (library != NULL) symbol = dlsym(library, name);
  }
  if (symbol == NULL) {
    const char *reason = dlerror();
    fprintf(stderr, "nessie: native PnetCDF has no %s: %s\n", name, reason != NULL ? reason : "not found");
    exit(127); /* what the dynamic linker does about a missing symbol */
  }
  return as_function(symbol);
}

static nessie_function native(int index) {
  nessie_function function = atomic_load_explicit(&native_functions[index], memory_order_acquire);
  if (function == NULL) {
    function = find_native(function_names[index]);
    atomic_store_explicit(&native_functions[index], function, memory_order_release);
  }
  return function;
}

/* Opens the engine beside this library, wherever that was installed. */
static void *open_engine_library(void) {
  Dl_info self;
  char path[4096];
  if (dladdr((const void *)function_names, &self) == 0 || self.dli_fname == NULL) return NULL;
  const char *slash = strrchr(self.dli_fname, '/');
  int folder = slash == NULL ? 0 : (int)(slash - self.dli_fname) + 1;
  int length = snprintf(path, sizeof path, "%.*s%s", folder, self.dli_fname, NESSIE_PNETCDF_ENGINE_LIBRARY);
  if (length < 0 || (size_t)length >= sizeof path) return NULL;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void open_engine(void) {
  const char *servers = getenv("NESSIE_SERVERS");
  if (servers == NULL || *servers == '\0') return;
  void *library = open_engine_library();
  if (library == NULL) {
    const char *reason = dlerror();
    notice("files are written by native PnetCDF, not staged, because the client library cannot be loaded",
           reason != NULL ? reason : NESSIE_PNETCDF_ENGINE_LIBRARY);
    return;
  }
  void *symbol = dlsym(library, NESSIE_PNETCDF_ENGINE_SYMBOL);
  const nessie_function *(*engine)(int) = NULL;
  if (symbol != NULL) memcpy(&engine, &symbol, sizeof engine);
  if (engine != NULL) engine_functions = engine(NESSIE_PNETCDF_FUNCTION_COUNT);
  if (engine_functions == NULL)
    notice("files are written by native PnetCDF, not staged, because the client library is of another version",
           NESSIE_PNETCDF_ENGINE_LIBRARY);
}

nessie_function nessie_shim_enter(int index, int *entered) {
  if (inside) return native(index);
  pthread_once(&engine_once, open_engine);
  if (engine_functions == NULL) return native(index);
  inside = 1;
  *entered = 1;
  return engine_functions[index];
}

void nessie_shim_leave(int entered) {
  if (entered) inside = 0;
}
