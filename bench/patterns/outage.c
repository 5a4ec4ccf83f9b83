/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What it means to a program that something happens while it has a file open: it writes as IOR does, has a command
 * carried out, then reads back what each process has put, and puts that once more, and says how long its longest call
 * took.
 *
 * Build:   mpicc -O2 outage.c pattern.c -o outage -lpnetcdf
 * Run:     NESSIE_BENCH_BETWEEN='sleep 1' mpiexec -n 2 ./outage --prefix /tmp/outage
 * Options: --transfers N  of 1 MiB, of each process (32)
 *          --independent  which it always is     and those of all patterns: pattern.h
 */
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

enum { kTransferBytes = 1 << 20 };

int main(int argc, char **argv) {
  Pattern p = pattern_begin(&argc, &argv, 1);
  const MPI_Offset transfers = number_option(argc, argv, "--transfers", 32);
  (void)flag_option(argc, argv, "--independent");
  if (transfers < 1) die("--transfers must be positive", "");
  int ncid, dims[2], variable;
  signed char *data = allocate(kTransferBytes, 1), *found = allocate(kTransferBytes, 1);
  const char *between = getenv("NESSIE_BENCH_BETWEEN");
  MPI_Offset count[2] = {1, kTransferBytes}, differing = 0;
  for (MPI_Offset i = 0; i < kTransferBytes; i++) data[i] = (signed char)(i * 31 + p.rank);
  pattern_ready(&p, argc, argv);
  begin_io(&p);
  check(ncmpi_create(MPI_COMM_WORLD, file_name(&p, "outage", 1), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
  check(ncmpi_def_dim(ncid, "transfer", transfers * p.processes, &dims[0]));
  check(ncmpi_def_dim(ncid, "byte", kTransferBytes, &dims[1]));
  check(ncmpi_def_var(ncid, "data", NC_BYTE, 2, dims, &variable));
  check(ncmpi_enddef(ncid));
  check(ncmpi_begin_indep_data(ncid));
  for (MPI_Offset i = 0; i < transfers; i++) {
    const MPI_Offset start[2] = {p.rank * transfers + i, 0};
    check(ncmpi_put_vara_schar(ncid, variable, start, count, data));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (p.rank == 0 && between != NULL && system(between) != 0) die("this failed: ", between);
  MPI_Barrier(MPI_COMM_WORLD);
  double longest = 0;
  for (int again = 0; again < 2; again++)
    for (MPI_Offset i = 0; i < transfers; i++) {
      const MPI_Offset start[2] = {p.rank * transfers + i, 0};
      const double began = MPI_Wtime();
      if (again)
        check(ncmpi_put_vara_schar(ncid, variable, start, count, data));
      else
        check(ncmpi_get_vara_schar(ncid, variable, start, count, found));
      const double took = MPI_Wtime() - began;
      if (took > longest) longest = took;
      differing += !again && memcmp(data, found, kTransferBytes) != 0;
    }
  MPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  check(ncmpi_end_indep_data(ncid));
  check(ncmpi_close(ncid));
  p.longest_s = longest;
  end_io(&p, &p.written, (double)(transfers * p.processes * kTransferBytes));
  end_run(&p);
  free(data), free(found);
  pattern_end(&p, differing);
  return 0;
}
