/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that come while the engine runs. */
#ifndef NESSIE_PNETCDF_SIGNALS_H
#define NESSIE_PNETCDF_SIGNALS_H

/* The number of signals that are held back from handlers of the program's on this thread. */
extern __thread int nessie_held_signals __attribute__((visibility("hidden")));

/* Sends them to this thread once more. Handlers run before it returns, or jump out of it. */
void nessie_release_signals(void);

#endif
