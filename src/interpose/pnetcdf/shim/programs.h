/* SPDX-License-Identifier: BSD-3-Clause */
/* Which programs this library will not be in front of, though LD_PRELOAD names it: those that are linked statically,
 * run with other rights than ours, are of another machine, or are scripts for one of these; and those of which that
 * cannot be told. Async-signal-safe, also in a child of vfork(). */
#ifndef NESSIE_PNETCDF_PROGRAMS_H
#define NESSIE_PNETCDF_PROGRAMS_H

#include <stdbool.h>

bool nessie_runs_without_us(int folder, const char *path);
/* Of the program that execvp would find. */
bool nessie_runs_without_us_by_name(const char *file);
/* Of the program that is open there. */
bool nessie_runs_without_us_open(int fd);

#endif
