/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "splitter.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kByNumber = 1 };

/* FNV-1a, twice from different beginnings. */
static void add_bytes(splitter_key *key, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i)
    for (int part = 0; part < 2; ++part)
      key->parts[part] = (key->parts[part] ^ ((const unsigned char *)bytes)[i]) * 1099511628211ull;
}

static splitter_key begun(void) { return (splitter_key){{14695981039346656037ull, 88172645463325252ull}}; }

/* --- by executable --------------------------------------------------------------------------------------------------- */

/* Adds the build id in a segment of notes. */
static bool add_build_id(splitter_key *key, const char *notes, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    memcpy(&note, notes, sizeof note);
    const size_t name = (note.n_namesz + 3u) & ~3u, whole = sizeof note + name + ((note.n_descsz + 3u) & ~3u);
    if (whole > size) return false;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + sizeof note, "GNU", 4) == 0) {
      add_bytes(key, notes + sizeof note + name, note.n_descsz);
      return true;
    }
    notes += whole, size -= whole;
  }
  return false;
}

/* The first object is the program itself. */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *argument) {
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    const char *notes = (const char *)(info->dlpi_addr + segment->p_vaddr); /* NOLINT(performance-no-int-to-ptr) */
    if (segment->p_type == PT_NOTE && add_build_id(argument, notes, segment->p_memsz)) return 1;
  }
  return -1;
}

static void add_name_and_size(splitter_key *key) {
  char path[PATH_MAX];
  struct stat status;
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
  add_bytes(key, name, strlen(name));
  if (stat("/proc/self/exe", &status) == 0) add_bytes(key, &status.st_size, sizeof status.st_size);
}

static splitter_key key_of_executable(void) {
  splitter_key key = begun();
  if (dl_iterate_phdr(look_at_program, &key) != 1) add_name_and_size(&key);
  return key;
}

/* --- by an explicit list ------------------------------------------------------------------------------------------------ */

static bool read_number(const char **at, long *number) {
  char *end = NULL;
  if (**at < '0' || **at > '9') return false;
  *number = strtol(*at, &end, 10);
  *at = end;
  return *number <= INT_MAX;
}

/* "0-3,4-7,9": which of the ranges has this rank; how many there are if none has. */
static const char *read_ranges(const char *text, int rank, long *number) {
  static const char *const wrong = "is no list of ranks, such as 0-3,4-7";
  *number = -1;
  long count = 0, end = -1;
  for (;; ++count) {
    long first = 0, last = 0;
    if (!read_number(&text, &first)) return wrong;
    last = first;
    if (*text == '-' && (++text, !read_number(&text, &last))) return wrong;
    if (last < first || first <= end) return "lists ranks that do not ascend";
    end = last;
    if (rank >= first && rank <= last) *number = count;
    if (*text == '\0') break;
    if (*text++ != ',') return wrong;
  }
  if (*number < 0) *number = count + 1;
  return NULL;
}

/* --- what the setting says ------------------------------------------------------------------------------------------- */

const char *splitter_read_key(const char *setting, int rank, int appnum, splitter_key *key) {
  static const char variable[] = "variable:";
  if (setting == NULL || *setting == '\0' || strcmp(setting, "appnum") == 0) {
    *key = (splitter_key){{kByNumber, (unsigned long long)appnum}};
  } else if (strcmp(setting, "executable") == 0) {
    *key = key_of_executable();
  } else if (strncmp(setting, variable, sizeof variable - 1) == 0) {
    const char *value = getenv(setting + sizeof variable - 1);
    *key = begun();
    if (value != NULL) add_bytes(key, value, strlen(value) + 1);
  } else {
    long number = 0;
    const char *wrong = read_ranges(setting, rank, &number);
    if (wrong != NULL && (*setting < '0' || *setting > '9'))
      wrong = "is none of appnum, executable, variable:NAME, 0-3,4-7";
    *key = (splitter_key){{kByNumber, (unsigned long long)number}};
    return wrong;
  }
  return NULL;
}
