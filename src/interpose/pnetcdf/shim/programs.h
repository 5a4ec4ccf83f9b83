/* SPDX-License-Identifier: BSD-3-Clause */
/* Which programs this library will not be in front of, though LD_PRELOAD names it. Async-signal-safe, also in a child
 * of vfork(). */
#ifndef NESSIE_PNETCDF_PROGRAMS_H
#define NESSIE_PNETCDF_PROGRAMS_H

#include <stdbool.h>

/* Whether a program is linked statically, or runs as another user. */
bool nessie_runs_without_us(const char *path);

#endif
