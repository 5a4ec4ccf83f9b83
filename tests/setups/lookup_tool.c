/* SPDX-License-Identifier: BSD-3-Clause */
/* A tool that stands before dlsym, as VirtualGL's and others do: what programs look up in a library comes from there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

void *dlsym(void *handle, const char *name) {
  static void *(*lookup)(void *, const char *);
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
  for (int i = 0; i < 3 && lookup == NULL; i++) {
    void *symbol = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    memcpy(&lookup, &symbol, sizeof lookup);
  }
  return lookup(handle, name);
}
