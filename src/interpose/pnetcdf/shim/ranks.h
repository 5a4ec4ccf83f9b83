/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of this job on this node: which of them have this library in front of their PnetCDF. */
#ifndef NESSIE_PNETCDF_RANKS_H
#define NESSIE_PNETCDF_RANKS_H

/* Says once, to all processes of the node, that this one is a rank and has the library: as soon as MPI is loaded.
 * Called when a file is opened, which MPI_Init does. Takes the lock of the dynamic linker's list until then, if a
 * launcher has numbered the process; otherwise async-signal-safe. */
void nessie_come_as_rank(void);

/* The number of the first rank of the job, of those on this node, that has not come; -1: all have, or that is not
 * known. The same for all who ask after MPI_Init, which ends when all have begun. */
int nessie_missing_rank(void);

#endif
