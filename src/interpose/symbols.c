/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "symbols.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- where the tables are --------------------------------------------------------------------------------------------- */

static void note_range(const struct dl_phdr_info *info, nessie_library *library) {
  library->begin = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
    if (segment->p_type == PT_GNU_RELRO) library->sealed_begin = begin, library->sealed_end = end;
    if (segment->p_type != PT_LOAD) continue;
    if (begin < library->begin) library->begin = begin;
    if (end > library->end) library->end = end;
  }
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info) {
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  return NULL;
}

/* The C library has mostly made an address of what was an offset in the file. */
static const void *place(const nessie_library *library, ElfW(Addr) value) {
  return (const void *)(value < library->base ? library->base + value : value);
}

static void note_table(const ElfW(Dyn) * entry, nessie_library *library) {
  if (entry->d_tag == DT_SYMTAB) library->symbols = place(library, entry->d_un.d_ptr);
  if (entry->d_tag == DT_STRTAB) library->names = place(library, entry->d_un.d_ptr);
  if (entry->d_tag == DT_GNU_HASH) library->gnu_hash = place(library, entry->d_un.d_ptr);
  if (entry->d_tag == DT_HASH) library->hash = place(library, entry->d_un.d_ptr);
  if (entry->d_tag == DT_RELA) library->relocations[0].first = place(library, entry->d_un.d_ptr);
  if (entry->d_tag == DT_RELASZ) library->relocations[0].size_bytes = entry->d_un.d_val;
  if (entry->d_tag == DT_JMPREL) library->relocations[1].first = place(library, entry->d_un.d_ptr);
  if (entry->d_tag == DT_PLTRELSZ) library->relocations[1].size_bytes = entry->d_un.d_val;
}

bool nessie_read_library(const struct dl_phdr_info *info, nessie_library *library) {
  const ElfW(Dyn) *first = dynamic_of(info);
  *library = (nessie_library){.file = info->dlpi_name, .soname = "", .base = info->dlpi_addr};
  if (first == NULL) return false;
  note_range(info, library);
  for (const ElfW(Dyn) *entry = first; entry->d_tag != DT_NULL; ++entry) note_table(entry, library);
  if (library->symbols == NULL || library->names == NULL) return false;
  for (const ElfW(Dyn) *entry = first; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_SONAME) library->soname = library->names + entry->d_un.d_val;
  return library->gnu_hash != NULL || library->hash != NULL;
}

bool nessie_is_in(const nessie_library *library, const void *address) {
  return (uintptr_t)address >= library->begin && (uintptr_t)address < library->end;
}

/* --- symbols ------------------------------------------------------------------------------------------------------------ */

static bool is_named(const nessie_library *library, uint32_t number, const char *name) {
  return strcmp(library->names + library->symbols[number].st_name, name) == 0;
}

static bool is_defined(const nessie_library *library, uint32_t number) {
  return library->symbols[number].st_shndx != SHN_UNDEF;
}

static uint32_t gnu_hash_of(const char *name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + (unsigned char)*name;
  return hash;
}

/* The table: how many chains there are, the number of the first symbol in them, the size and the shift of a filter, the
 * filter, where each chain begins, and for each symbol its hash, with the lowest bit set in the last of a chain. */
static uint32_t find_by_gnu_hash(const nessie_library *library, const char *name) {
  const uint32_t *table = library->gnu_hash, chains = table[0], first = table[1];
  const uint32_t *begins = (const uint32_t *)((const ElfW(Addr) *)(table + 4) + table[2]), *hashes = begins + chains;
  const uint32_t hash = gnu_hash_of(name);
  uint32_t number = chains == 0 ? 0 : begins[hash % chains];
  for (; number >= first && number != 0; ++number) {
    const uint32_t found = hashes[number - first];
    if ((found | 1) == (hash | 1) && is_named(library, number, name)) return number;
    if ((found & 1) != 0) return 0;
  }
  return 0;
}

/* The first of this name that is defined; 0: there is none. */
static uint32_t find_one_by_one(const nessie_library *library, const char *name) {
  for (uint32_t number = 1; number < library->hash[1]; ++number)
    if (is_defined(library, number) && is_named(library, number, name)) return number;
  return 0;
}

void *nessie_defined_in(const nessie_library *library, const char *name) {
  const uint32_t number = library->gnu_hash != NULL ? find_by_gnu_hash(library, name) : find_one_by_one(library, name);
  if (number == 0 || !is_defined(library, number)) return NULL;
  return (void *)(library->base + library->symbols[number].st_value);
}

static uint32_t symbol_of(const ElfW(Rela) * relocation) {
  return (uint32_t)(sizeof(ElfW(Addr)) == 8 ? (uint64_t)relocation->r_info >> 32 : relocation->r_info >> 8);
}

/* Programs often export nothing: then no table says how many symbols there are, but for the places that use them. */
bool nessie_is_asked_for_by(const nessie_library *library, const char *name) {
  for (size_t table = 0; table < sizeof library->relocations / sizeof *library->relocations; ++table) {
    const ElfW(Rela) *first = library->relocations[table].first;
    for (size_t i = 0; i < library->relocations[table].size_bytes / sizeof *first; ++i) {
      const uint32_t number = symbol_of(&first[i]);
      if (number != 0 && !is_defined(library, number) && is_named(library, number, name)) return true;
    }
  }
  return false;
}

/* --- what the library finds elsewhere ------------------------------------------------------------------------------- */

/* Where what a relocation names is to be found; 0: where it is. */
typedef uintptr_t Choice(const nessie_library *library, const ElfW(Rela) * relocation, const void *state);

/* Whether any is found in another place; with `change` none is any more. */
static bool look_for(const nessie_library *library, Choice *choose, const void *state, bool change) {
  bool any = false;
  for (int i = 0; i < 2; ++i) {
    const ElfW(Rela) *first = library->relocations[i].first;
    const size_t count = first == NULL ? 0 : library->relocations[i].size_bytes / sizeof *first;
    for (size_t at = 0; at < count; ++at) {
      const uintptr_t chosen = symbol_of(&first[at]) == 0 ? 0 : choose(library, &first[at], state);
      _Atomic uintptr_t *slot = (_Atomic uintptr_t *)(library->base + first[at].r_offset);
      if (chosen == 0 || atomic_load(slot) == chosen) continue;
      if (change) atomic_store(slot, chosen);
      any = true;
    }
  }
  return any;
}

static bool protect_sealed(const nessie_library *library, int protection) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t begin = library->sealed_begin / page * page, end = library->sealed_end / page * page;
  return begin == end || mprotect((void *)begin, end - begin, protection) == 0;
}

static void find(const nessie_library *library, Choice *choose, const void *state) {
  if (!look_for(library, choose, state, false) || !protect_sealed(library, PROT_READ | PROT_WRITE)) return;
  look_for(library, choose, state, true);
  (void)protect_sealed(library, PROT_READ);
}

static const char *name_of(const nessie_library *library, const ElfW(Rela) * relocation) {
  return library->names + library->symbols[symbol_of(relocation)].st_name;
}

static uintptr_t own_of(const nessie_library *library, const ElfW(Rela) * relocation, const void *prefix) {
  if (!is_defined(library, symbol_of(relocation))) return 0;
  if (strncmp(name_of(library, relocation), prefix, strlen(prefix)) != 0) return 0;
  return library->base + library->symbols[symbol_of(relocation)].st_value + (uintptr_t)relocation->r_addend;
}

void nessie_find_own(const nessie_library *library, const char *prefix) { find(library, own_of, prefix); }

typedef struct {
  void *(*place)(const char *name, void *state);
  void *state;
} Elsewhere;

static uintptr_t elsewhere_of(const nessie_library *library, const ElfW(Rela) * relocation, const void *state) {
  const Elsewhere *elsewhere = state;
  if (is_defined(library, symbol_of(relocation))) return 0;
  void *place = elsewhere->place(name_of(library, relocation), elsewhere->state);
  return place == NULL ? 0 : (uintptr_t)place + (uintptr_t)relocation->r_addend;
}

void nessie_find_elsewhere(const nessie_library *library, void *(*place)(const char *name, void *state), void *state) {
  const Elsewhere elsewhere = {place, state};
  find(library, elsewhere_of, &elsewhere);
}
