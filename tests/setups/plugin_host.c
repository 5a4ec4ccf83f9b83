/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a plug-in: FILE local|deepbind. It is closed before the program ends. PnetCDF and MPI come with it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  void (*run)(void) = NULL;
  const int deep = argc > 2 && strcmp(argv[2], "deepbind") == 0;
  void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
  void *symbol = plugin == NULL ? NULL : dlsym(plugin, "run_plugin");
  if (symbol == NULL) return fprintf(stderr, "%s\n", dlerror()), 8;
  memcpy(&run, &symbol, sizeof run);
  run();
  dlclose(plugin);
  return 0;
}
