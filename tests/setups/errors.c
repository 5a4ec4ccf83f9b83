/* SPDX-License-Identifier: BSD-3-Clause */
/* What dlerror() has to say is kept by the first call of a function of PnetCDF, and left alone by what is looked up. */
#include <dlfcn.h>
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

static const char *said(void) {
  const char *text = dlerror();
  return text != NULL ? text : "nothing";
}

int main(void) {
  printf("%s\n", ncmpi_strerrno(NC_EBADID));
  void *library = dlopen("libpnetcdf.so.0d", RTLD_NOW);
  (void)dlopen("./none.so", RTLD_NOW);
  printf("%s\n", ncmpi_strerror(NC_NOERR));
  printf("%s\n", said());
  (void)dlsym(library, "ncmpi_none");
  const int found = dlsym(library, "ncmpi_create") != NULL;
  printf("%d: %s\n", found, said());
  (void)dlsym(library, "ncmpi_none");
  printf("%s\n", said());
  return 0;
}
