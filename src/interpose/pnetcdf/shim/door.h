/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting until what a staging server has of a file is in it. Async-signal-safe, also in a child of vfork(): no memory
 * is allocated, no lock is taken, errno is kept. */
#ifndef NESSIE_PNETCDF_DOOR_H
#define NESSIE_PNETCDF_DOOR_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether any file is on any board; never while the engine runs, whose own files are. As whoever opens a file asks
 * that, it is also where a rank is noticed that loads MPI late (ranks.h). */
bool nessie_any_files(void);
/* Returns when the file is whole, or nobody can make it so. False: it was whole before. */
bool nessie_settle(dev_t device, ino_t inode);
/* The same for all files. */
void nessie_settle_all(void);
/* The same for a file that is named, with flags of statx(); nothing if it is no regular file, or on no board. */
void nessie_settle_named(int folder, const char *path, int flags);
/* The same for a file that is open. */
void nessie_settle_descriptor(int fd);

/* Somebody is about to write to the file, if it is a regular one, past PnetCDF. */
void nessie_note_writer_of(int fd);
void nessie_note_writer_of_named(const char *path);

#endif
