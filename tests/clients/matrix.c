/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls a long list of PnetCDF functions, with good and bad arguments, and prints every code and value.
 *
 *   mpiexec -n N ./matrix DIRECTORY OUTPUT
 *
 * writes files into DIRECTORY and what it sees to OUTPUT.<rank>. Natively and staged, both must be the same. */
#include "matrix.h"

#include <stdlib.h>
#include <string.h>

int rank, size;
FILE *out;
static const char *directory;

const char *file_path(const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s.nc", directory, name);
  return path;
}

void show(const char *what, int code) { fprintf(out, "%s -> %s\n", what, ncmpi_strerrno(code)); }

void show_number(const char *what, long long value) { fprintf(out, "  %s = %lld\n", what, value); }

void show_doubles(const char *what, const double *values, int count) {
  fprintf(out, "  %s =", what);
  for (int i = 0; i < count; ++i) fprintf(out, " %.17g", values[i]);
  fprintf(out, "\n");
}

void show_ints(const char *what, const int *values, int count) {
  fprintf(out, "  %s =", what);
  for (int i = 0; i < count; ++i) fprintf(out, " %d", values[i]);
  fprintf(out, "\n");
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3) {
    fprintf(stderr, "usage: %s DIRECTORY OUTPUT [SECTION]\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  directory = argv[1];
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", argv[2], rank);
  out = fopen(name, "w");
  if (out == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  static const int formats[] = {0, NC_64BIT_OFFSET, NC_64BIT_DATA};
  static const struct {
    const char *name;
    void (*run)(int);
  } sections[] = {{"open", open_and_close},     {"define", define},       {"data", data},
                  {"bounds", bounds},           {"types", types},         {"nonblocking", nonblocking},
                  {"records", records},         {"again", again},         {"flexible", flexible},
                  {"independent", independent}, {"multi", multi},         {"hints", hints},
                  {"overlaps", overlaps},       {"filetypes", filetypes}, {"dimensions", many_dimensions}};
  for (size_t i = 0; i < sizeof sections / sizeof *sections; ++i) {
    if (argc > 3 && strcmp(argv[3], sections[i].name) != 0) continue;
    for (int format = 0; format < 3; ++format) {
      fprintf(out, "=== %s, format %d\n", sections[i].name, formats[format]);
      fflush(out);
      sections[i].run(formats[format]);
    }
  }
  fclose(out);
  MPI_Finalize();
  return 0;
}
