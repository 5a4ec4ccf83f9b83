/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs plug-ins: local|deepbind FILE... They are closed before the program ends. PnetCDF and MPI come with them.
 * "turns MPI FILE...": each is closed before the next one is opened; MPI is loaded all the time. */
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

static int run_in_turn(const char *mpi, char **files, int count) {
  if (dlopen(mpi, RTLD_NOW | RTLD_GLOBAL) == NULL) return 9;
  setenv("PLUGIN_FOLLOWS", "1", 1);
  for (int i = 0; i < count; i++) {
    if (i == count - 1) unsetenv("PLUGIN_FOLLOWS");
    dlclose(run(files[i], 0));
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 3 && strcmp(argv[1], "turns") == 0) return run_in_turn(argv[2], argv + 3, argc - 3);
  void *plugins[8] = {NULL};
  const int deep = argc > 1 && strcmp(argv[1], "deepbind") == 0;
  for (int i = 2; i < argc && i < 8; i++) plugins[i] = run(argv[i], deep ? RTLD_DEEPBIND : 0);
  for (int i = 2; i < argc && i < 8; i++) dlclose(plugins[i]);
  return 0;
}
