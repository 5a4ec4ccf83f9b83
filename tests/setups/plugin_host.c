/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs plug-ins: local|deepbind FILE... They are closed before the program ends. PnetCDF and MPI come with them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *run(const char *file, int flags) {
  void (*function)(void) = NULL;
  void *plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL | flags);
  void *symbol = plugin == NULL ? NULL : dlsym(plugin, "run_plugin");
  if (symbol == NULL) fprintf(stderr, "%s\n", dlerror()), exit(8);
  memcpy(&function, &symbol, sizeof function);
  function();
  return plugin;
}

int main(int argc, char **argv) {
  void *plugins[8] = {NULL};
  const int deep = argc > 1 && strcmp(argv[1], "deepbind") == 0;
  for (int i = 2; i < argc && i < 8; i++) plugins[i] = run(argv[i], deep ? RTLD_DEEPBIND : 0);
  for (int i = 2; i < argc && i < 8; i++) dlclose(plugins[i]);
  return 0;
}
