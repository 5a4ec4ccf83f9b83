/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. Native PnetCDF is whatever library defines its functions, under whatever name: a wheel renames it, an
 * I/O library has it inside. Preloaded tools define some of the functions, too. Such a tool has to look up who comes
 * behind it, which PnetCDF never does; and PnetCDF has functions of its own inside, and writes through MPI-IO. */
#define _GNU_SOURCE
#include "library.h"

#include "functions.h"

#include <interpose/embedded/embedded_abi.h>
#include <interpose/symbols.h>

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(const nessie_library *) native_library;

static bool begins_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

static bool is_program(const nessie_library *library) { return *library->file == '\0'; }

static bool defines(const nessie_library *library, const char *name) {
  return nessie_defined_in(library, name) != NULL;
}

/* --- native PnetCDF ------------------------------------------------------------------------------------------------- */

static bool looks_functions_up(const nessie_library *library) {
  return nessie_is_asked_for_by(library, "dlsym") || nessie_is_asked_for_by(library, "dlvsym");
}

static bool is_pnetcdf(const nessie_library *library) {
  if (!defines(library, "ncmpi_create") || begins_with(library->soname, NESSIE_EMBEDDED_PNETCDF)) return false;
  if (defines(library, "ncmpii_error_mpi2nc") || nessie_is_asked_for_by(library, "MPI_File_set_view")) return true;
  return defines(library, "ncmpi_inq_libvers") && !looks_functions_up(library);
}

typedef struct {
  const void *behind_us; /* an address in the library that is to be preferred */
  nessie_library found;
  bool any;
} Search;

/* A program that has PnetCDF inside, and shows it, never calls us. We ourselves look functions up. */
static int consider(struct dl_phdr_info *info, size_t size, void *argument) {
  Search *search = argument;
  nessie_library library;
  (void)size;
  if (!nessie_read_library(info, &library) || is_program(&library) || !is_pnetcdf(&library)) return 0;
  const bool preferred = nessie_is_in(&library, search->behind_us);
  if (!search->any || preferred) search->found = library;
  search->any = true;
  return preferred;
}

/* Several threads may do so at once; they find the same. */
static const nessie_library *remember(const nessie_library *found) {
  const nessie_library *nobody = NULL;
  nessie_library *library = malloc(sizeof *library);
  if (library == NULL) return NULL;
  *library = *found;
  (void)dlopen(library->file, RTLD_LAZY | RTLD_NOLOAD); /* a plug-in may not take it along */
  if (atomic_compare_exchange_strong(&native_library, &nobody, library)) return library;
  free(library);
  return nobody;
}

static const nessie_library *find_native(void) {
  const nessie_library *known = atomic_load_explicit(&native_library, memory_order_acquire);
  if (known != NULL) return known;
  Search search = {.behind_us = nessie_real_dlsym(RTLD_NEXT, "ncmpi_create")};
  dl_iterate_phdr(consider, &search);
  return search.any ? remember(&search.found) : NULL;
}

bool nessie_has_native(void) { return find_native() != NULL; }

void *nessie_native_function(const char *name) {
  const nessie_library *library = find_native();
  return library == NULL ? NULL : nessie_defined_in(library, name);
}

const char *nessie_load_native(void) {
  if (find_native() != NULL || dlopen(NESSIE_PNETCDF_SONAME, RTLD_LAZY | RTLD_LOCAL) != NULL) return NULL;
  return dlerror();
}

bool nessie_is_native(const void *address) {
  const nessie_library *library = atomic_load_explicit(&native_library, memory_order_acquire);
  return library != NULL && nessie_is_in(library, address);
}

/* --- who comes next ------------------------------------------------------------------------------------------------- */

typedef struct {
  const void *caller;
  const char *name;
  bool passed; /* whether the caller's own library was seen */
  const void *next;
} Walk;

static int walk(struct dl_phdr_info *info, size_t size, void *argument) {
  Walk *walk = argument;
  nessie_library library;
  (void)size;
  if (!nessie_read_library(info, &library)) return 0;
  if (walk->passed) walk->next = nessie_defined_in(&library, walk->name);
  if (nessie_is_in(&library, walk->caller)) walk->passed = true;
  return walk->next != NULL;
}

const void *nessie_next_function(const void *caller, const char *name) {
  Walk search = {caller, name, false, NULL};
  dl_iterate_phdr(walk, &search);
  return search.next;
}

/* --- who calls from inside ---------------------------------------------------------------------------------------- */

static bool look_whether_inside(const void *address) {
  static const char *const faces[] = {"nfmpi_", "__pnetcdf_MOD_", "_Z"};
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_sname == NULL) return true;
  for (size_t i = 0; i < sizeof faces / sizeof *faces; ++i)
    if (begins_with(info.dli_sname, faces[i])) return false;
  return true;
}

/* Places of calls are few, and looking one up takes longer than the call. */
enum { kPlaces = 1024 };
typedef _Atomic uintptr_t Places[kPlaces]; /* an address, and in its lowest bit, shifted, what is known of it */

static bool look_once(Places known, const void *address, bool (*look)(const void *address)) {
  const uintptr_t at = (uintptr_t)address;
  _Atomic uintptr_t *place = &known[(at >> 2 ^ at >> 11) % kPlaces];
  const uintptr_t found = atomic_load_explicit(place, memory_order_relaxed);
  if (found >> 1 == at) return found & 1;
  const bool is_so = look((const char *)address - 1);
  atomic_store_explicit(place, at << 1 | is_so, memory_order_relaxed);
  return is_so;
}

bool nessie_is_native_inside(const void *address) {
  static Places known;
  return look_once(known, address, look_whether_inside);
}

/* --- plug-ins that each bring a PnetCDF ----------------------------------------------------------------------------- */

typedef struct {
  const void *address;
  bool part, is_pnetcdf;
} Place;

/* The dynamic linker lets one thread at a time come here. */
static int look_at_place(struct dl_phdr_info *info, size_t size, void *argument) {
  Place *place = argument;
  nessie_library library;
  (void)size;
  if (!nessie_read_library(info, &library) || !nessie_is_in(&library, place->address)) return 0;
  place->is_pnetcdf = !is_program(&library) && is_pnetcdf(&library);
  if (place->part) nessie_find_own(&library, "ncmpi_");
  return 1;
}

static bool is_of_other_pnetcdf(const void *function) {
  Place place = {function, false, false};
  if (function == NULL || nessie_is_native(function)) return false;
  dl_iterate_phdr(look_at_place, &place);
  return place.is_pnetcdf;
}

/* Where PnetCDF, or a tool, is there for all to see, the other one's calls go to it natively, too. */
bool nessie_is_of_other(const void *function) {
  return is_of_other_pnetcdf(function) && nessie_real_dlsym(RTLD_NEXT, "ncmpi_create") == NULL;
}

void nessie_part_other(const void *function) {
  Place place = {function, true, false};
  dl_iterate_phdr(look_at_place, &place);
}

void *nessie_other_function(const void *caller, const char *name) {
  Dl_info info;
  struct link_map *map = NULL;
  if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) return NULL;
  void *library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  void *symbol = library == NULL ? NULL : nessie_real_dlsym(library, name);
  if (library != NULL) dlclose(library);
  return is_of_other_pnetcdf(symbol) ? symbol : NULL;
}

static int count_pnetcdf(struct dl_phdr_info *info, size_t size, void *count) {
  nessie_library library;
  (void)size;
  if (nessie_read_library(info, &library) && !is_program(&library) && is_pnetcdf(&library)) ++*(int *)count;
  return 0;
}

static bool look_whether_other(const void *caller) {
  int count = 0;
  dl_iterate_phdr(count_pnetcdf, &count);
  void *function = count > 1 ? nessie_other_function(caller, "ncmpi_create") : NULL;
  if (function != NULL) nessie_part_other(function);
  return function != NULL;
}

static int count_changes(struct dl_phdr_info *info, size_t size, void *changes) {
  (void)size;
  *(unsigned long long *)changes = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

/* Where a plug-in was that is closed, another one may be. */
static void forget_after_changes(Places known) {
  static _Atomic unsigned long long known_after;
  unsigned long long changes = 0;
  dl_iterate_phdr(count_changes, &changes);
  if (atomic_load(&known_after) == changes) return;
  for (int i = 0; i < kPlaces; ++i) atomic_store_explicit(&known[i], 0, memory_order_relaxed);
  atomic_store(&known_after, changes);
}

bool nessie_has_other(const void *caller) {
  static Places known;
  forget_after_changes(known);
  return look_once(known, caller, look_whether_other);
}

/* --- other libraries ------------------------------------------------------------------------------------------------ */

typedef struct {
  bool in_program, any; /* whether the program itself, or any library, is an MPI */
  const char *other;    /* the file of one that is not the engine's, or of a second one */
  const char *stub;     /* the file of what has a part of MPI only */
} Mpis;

/* CommSplitter defines all functions of the MPI behind it. */
static bool is_mpi(const nessie_library *library) {
  return defines(library, "PMPI_Comm_rank") && !begins_with(library->soname, "libcommsplitter");
}

/* Tools define MPI_ functions, too, and go on to the PMPI_ functions of an MPI. */
static bool is_stub(const nessie_library *library) {
  return defines(library, "MPI_Comm_rank") && !nessie_is_asked_for_by(library, "PMPI_Comm_rank") &&
         !looks_functions_up(library);
}

static int note_mpi(struct dl_phdr_info *info, size_t size, void *argument) {
  Mpis *mpis = argument;
  nessie_library library;
  (void)size;
  if (!nessie_read_library(info, &library)) return 0;
  const bool whole = is_mpi(&library), stub = !whole && is_stub(&library);
  if (is_program(&library)) mpis->in_program = whole || stub;
  if (whole && (mpis->any || strcmp(library.soname, NESSIE_MPI_SONAME) != 0)) mpis->other = library.file;
  if (whole) mpis->any = true;
  if (stub) mpis->stub = library.file;
  return mpis->in_program;
}

static const char *foreign_mpi(void) {
  static char text[512];
  Mpis mpis = {false, false, NULL, NULL};
  dl_iterate_phdr(note_mpi, &mpis);
  if (mpis.in_program) return "the program brings its own MPI, or one that it was linked to statically";
  const char *file = mpis.other != NULL || mpis.any ? mpis.other : mpis.stub;
  if (file == NULL) return NULL;
  snprintf(text, sizeof text, "the program uses %s, and Nessie was built for %s", file, NESSIE_MPI_SONAME);
  return text;
}

static bool is_our_version(const char *version) {
  const size_t length = strlen(NESSIE_PNETCDF_VERSION);
  return begins_with(version, NESSIE_PNETCDF_VERSION) && (version[length] == '\0' || version[length] == ' ');
}

static const char *version_of(const nessie_library *library) {
  const char *(*version)(void) = NULL;
  void *symbol = nessie_defined_in(library, "ncmpi_inq_libvers");
  if (symbol == NULL) return "?";
  memcpy(&version, &symbol, sizeof version);
  return version();
}

static const char *foreign_pnetcdf(void) {
  static char text[512];
  const nessie_library *library = find_native();
  if (library == NULL) return NULL; /* each call says what is missing */
  const char *version = version_of(library);
  if (is_our_version(version) && strcmp(library->soname, NESSIE_PNETCDF_SONAME) == 0) return NULL;
  snprintf(text, sizeof text, "the program uses %s (PnetCDF %.40s), and Nessie was built for %s (%s)", library->file,
           version, NESSIE_PNETCDF_SONAME, NESSIE_PNETCDF_VERSION);
  return text;
}

const char *nessie_foreign_library(void) {
  const char *mpi = foreign_mpi();
  return mpi != NULL ? mpi : foreign_pnetcdf();
}

/* --- ranks -------------------------------------------------------------------------------------------------------------- */

static int look_for_mpi(struct dl_phdr_info *info, size_t size, void *none) {
  nessie_library library;
  (void)size, (void)none;
  return nessie_read_library(info, &library) && strcmp(library.soname, NESSIE_MPI_SONAME) == 0;
}

bool nessie_has_mpi(void) { return dl_iterate_phdr(look_for_mpi, NULL) != 0; }

/* PnetCDF asks MPI what datatypes are made of, which hardly anybody else does. */
static int look_into_program(struct dl_phdr_info *info, size_t size, void *has_pnetcdf) {
  nessie_library program;
  (void)size;
  *(bool *)has_pnetcdf =
      nessie_read_library(info, &program) && nessie_is_asked_for_by(&program, "MPI_Type_get_contents") &&
      nessie_is_asked_for_by(&program, "MPI_File_set_view") && !nessie_is_asked_for_by(&program, "ncmpi_create") &&
      !nessie_is_asked_for_by(&program, "ncmpi_open");
  return 1; /* the program comes first */
}

bool nessie_has_pnetcdf_inside(void) {
  bool has_pnetcdf = false;
  dl_iterate_phdr(look_into_program, &has_pnetcdf);
  return has_pnetcdf;
}
