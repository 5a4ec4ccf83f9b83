/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries of ours that are opened at run time lie beside those that open them, wherever they were installed. */
#ifndef NESSIE_INTERPOSE_BESIDE_H
#define NESSIE_INTERPOSE_BESIDE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The path of `name` in the folder of the library that has the address `self`. False: it is not known, or too long. */
static inline bool nessie_path_beside(const void *self, const char *name, char *path, size_t size) {
  Dl_info info;
  if (dladdr(self, &info) == 0 || info.dli_fname == NULL) return false;
  const char *slash = strrchr(info.dli_fname, '/');
  const int folder = slash == NULL ? 0 : (int)(slash - info.dli_fname) + 1;
  const int length = snprintf(path, size, "%.*s%s", folder, info.dli_fname, name);
  return length >= 0 && (size_t)length < size;
}

#endif
