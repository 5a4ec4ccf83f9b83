/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads LIBRARY; then one that is not there, and says why after it has used files for the first time. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
  struct stat status;
  puts(argc > 1 && dlopen(argv[1], RTLD_NOW) != NULL ? "loaded" : "not loaded");
  if (dlopen("/absent.so", RTLD_NOW) != NULL) return 1;
  FILE *file = fopen("/dev/null", "a");
  stat("/dev/null", &status);
  const char *reason = dlerror();
  puts(reason != NULL ? reason : "no reason");
  return file == NULL;
}
