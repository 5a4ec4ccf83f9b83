/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences for the summary of `nessie run`. */
#ifndef NESSIE_PNETCDF_NOTES_H
#define NESSIE_PNETCDF_NOTES_H

/* Sends the texts, one after the other, as one sentence, to the socket that NESSIE_NOTES names. Waits a tenth of a
 * second at most; what cannot be sent is dropped. Async-signal-safe, also in a child of vfork(). */
void nessie_note(const char *const *texts, int count);

#endif
