/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that wait until their test has done something. */
#ifndef NESSIE_TESTS_PAUSES_H
#define NESSIE_TESTS_PAUSES_H

#include "setups.h"

#include <string.h>
#include <unistd.h>

/* Where it is the place that was asked for: makes the file `ready`, and waits for `go`, a minute at most. */
static inline void pause_at(const char *here, const char *asked) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(here, asked) != 0) return;
  if (rank == 0) fclose(fopen("ready", "w"));
  for (int i = 0; i < 6000 && access("go", F_OK) != 0; i++) usleep(10000);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) remove("go"), remove("ready");
  MPI_Barrier(MPI_COMM_WORLD);
}

#endif
