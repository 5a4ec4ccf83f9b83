/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks whether PnetCDF, to which this is not linked, is there, and what dlerror() has to say. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static void ask(const char *way, void *where) {
  const char *found = dlsym(where, "ncmpi_create") != NULL ? "there" : "not there", *text = dlerror();
  printf("%s: %s, %s\n", way, found, text != NULL ? text : "nothing");
}

int main(void) {
  ask("default", RTLD_DEFAULT);
  ask("next", RTLD_NEXT);
  ask("program", dlopen(NULL, RTLD_NOW));
  return 0;
}
