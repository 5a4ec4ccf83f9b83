/* SPDX-License-Identifier: BSD-3-Clause */
/* What makes a program wait that opens a file of which a staging server still has a part. */
#ifndef NESSIE_PNETCDF_FILES_H
#define NESSIE_PNETCDF_FILES_H

#include "../engine_abi.h"

/* For the engine. */
const nessie_boards *nessie_seen_boards(void);

/* Before another program is executed: one that this library will not be in front of, because `kept` says so, or because
 * it is linked statically or runs as another user, finds all files whole. Async-signal-safe, also in a child of
 * vfork(). */
void nessie_settle_before_exec(const char *path, int kept);

#endif
