/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "library.h"

#include "functions.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  uintptr_t begin, end;
} Range;

static _Atomic(void *) native_library;
static _Atomic uintptr_t native_begin, native_end;

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static bool begins_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

/* The first loaded library whose file's name begins so, referred to once more; NULL: none. */
static void *find_loaded(const char *prefix) {
  void *self = dlopen(NULL, RTLD_LAZY);
  struct link_map *map = NULL;
  if (self == NULL || dlinfo(self, RTLD_DI_LINKMAP, &map) != 0) return NULL;
  while (map->l_prev != NULL) map = map->l_prev;
  for (; map != NULL; map = map->l_next)
    if (begins_with(base_name(map->l_name), prefix)) return dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  return NULL;
}

static struct link_map *map_of(void *library) {
  struct link_map *map = NULL;
  return library != NULL && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map : NULL;
}

typedef struct {
  uintptr_t base;
  Range range;
} Search;

static int note_range(struct dl_phdr_info *info, size_t size, void *argument) {
  Search *search = argument;
  (void)size;
  if (info->dlpi_addr != search->base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
    if (segment->p_type != PT_LOAD) continue;
    if (search->range.begin == 0 || begin < search->range.begin) search->range.begin = begin;
    if (end > search->range.end) search->range.end = end;
  }
  return 1;
}

static void remember_range(void *library) {
  const struct link_map *map = map_of(library);
  Search search = {map == NULL ? 0 : map->l_addr, {0, 0}};
  if (map == NULL || dl_iterate_phdr(note_range, &search) == 0) return;
  atomic_store(&native_end, search.range.end);
  atomic_store(&native_begin, search.range.begin);
}

void *nessie_native_library(void) {
  void *library = atomic_load_explicit(&native_library, memory_order_acquire);
  if (library != NULL) return library;
  library = find_loaded("libpnetcdf.so");
  if (library == NULL) library = dlopen(NESSIE_PNETCDF_SONAME, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) return NULL;
  remember_range(library);
  atomic_store_explicit(&native_library, library, memory_order_release);
  return library;
}

bool nessie_is_native(const void *address) {
  const uintptr_t at = (uintptr_t)address;
  return at >= atomic_load_explicit(&native_begin, memory_order_relaxed) &&
         at < atomic_load_explicit(&native_end, memory_order_relaxed);
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
bool nessie_is_native_inside(const void *address) {
  enum { kPlaces = 1024 };
  static _Atomic uintptr_t known[kPlaces]; /* an address, and in its lowest bit, shifted, what it is */
  const uintptr_t at = (uintptr_t)address;
  _Atomic uintptr_t *place = &known[(at >> 2 ^ at >> 11) % kPlaces];
  const uintptr_t found = atomic_load_explicit(place, memory_order_relaxed);
  if (found >> 1 == at) return found & 1;
  const bool inside = look_whether_inside((const char *)address - 1);
  atomic_store_explicit(place, at << 1 | inside, memory_order_relaxed);
  return inside;
}

/* --- other libraries ------------------------------------------------------------------------------------------------ */

/* The file that defines a symbol for the program; NULL: nobody. *in_program: the program itself. */
static const char *definer_of(const char *name, bool *in_program) {
  Dl_info info, program;
  void *symbol = nessie_real_dlsym(RTLD_DEFAULT, name);
  if (symbol == NULL || dladdr(symbol, &info) == 0) return NULL;
  struct link_map *map = map_of(dlopen(NULL, RTLD_LAZY));
  *in_program =
      map != NULL && map->l_ld != NULL && dladdr(map->l_ld, &program) != 0 && program.dli_fbase == info.dli_fbase;
  return info.dli_fname;
}

static const char *foreign_mpi(void) {
  static char text[512];
  bool in_program = false;
  const char *file = definer_of("MPI_Comm_rank", &in_program);
  if (file != NULL && in_program) return "the program brings its own MPI, or one that it was linked to statically";
  const char *profiled = definer_of("PMPI_Comm_rank", &in_program); /* tools define MPI_ functions, but not these */
  if (profiled != NULL) file = profiled;
  if (file == NULL || begins_with(base_name(file), NESSIE_MPI_SONAME)) return NULL;
  snprintf(text, sizeof text, "the program uses %s, and Nessie was built for %s", file, NESSIE_MPI_SONAME);
  return text;
}

static const char *foreign_pnetcdf(void) {
  static char text[512];
  void *library = nessie_native_library();
  const struct link_map *map = map_of(library);
  if (map == NULL) return NULL; /* each call says what is missing */
  const char *(*version)(void) = NULL;
  void *symbol = nessie_real_dlsym(library, "ncmpi_inq_libvers");
  if (symbol != NULL) memcpy(&version, &symbol, sizeof version);
  const char *text_of_it = version == NULL ? "?" : version();
  const size_t length = strlen(NESSIE_PNETCDF_VERSION);
  const bool same = strncmp(text_of_it, NESSIE_PNETCDF_VERSION, length) == 0 &&
                    (text_of_it[length] == '\0' || text_of_it[length] == ' ');
  if (same && map_of(dlopen(NESSIE_PNETCDF_SONAME, RTLD_LAZY | RTLD_NOLOAD)) == map) return NULL;
  snprintf(text, sizeof text, "the program uses %s (PnetCDF %.40s), and Nessie was built for %s (%s)", map->l_name,
           text_of_it, NESSIE_PNETCDF_SONAME, NESSIE_PNETCDF_VERSION);
  return text;
}

const char *nessie_foreign_library(void) {
  const char *mpi = foreign_mpi();
  return mpi != NULL ? mpi : foreign_pnetcdf();
}
