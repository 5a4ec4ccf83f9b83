/* SPDX-License-Identifier: BSD-3-Clause */
/* How services let themselves be found, and clients find them, in C: nssi/discovery.hpp says what is possible, and
 * docs/finding.md how it is used. Functions return NESSIE_OK or a code of nessie/codes.h; nssi_rt_last_error() has the
 * sentence. */
#ifndef NSSI_DISCOVERY_H
#define NSSI_DISCOVERY_H

#include <nssi/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for the service that `what` says (a URL, "file:PATH", "pmix:NAME", "dir:NAME", "env:VARIABLE"), and connects to
 * the first of its instances that can be reached. `timeout_ms` and `peer` as for nssi_rt_connect().
 *   NESSIE_INVALID_ARGUMENT  also: it is none of these
 *   NESSIE_NOT_FOUND         the variable is not set, or no directory is named (setting `directory`)
 *   NESSIE_TIMED_OUT         there is no such file, or nobody has announced that name
 *   NESSIE_PEER_LOST         the file or name is stale: its service is gone; or nobody listens there any more
 *   NESSIE_REFUSED           the file could be somebody else's; the credentials differ
 *   NESSIE_BAD_MESSAGE, NESSIE_UNSUPPORTED  it is no contact, or one of another version
 *   NESSIE_UNSUPPORTED       also: no launcher with PMIx started this process, or it keeps no names */
int nssi_rt_connect_to(nssi_rt_runtime *runtime, const char *what, int32_t timeout_ms, uint64_t *peer);

/* Finds the same without connecting, and calls `use` for each instance with its URL, which it may read until it
 * returns, in the caller's thread. Null: counts only. `count` may be null. */
int nssi_rt_find(nssi_rt_runtime *runtime, const char *what, int32_t timeout_ms,
                 void (*use)(const char *url, void *context), void *context, uint64_t *count);

/* Says where the runtime can be reached, and what it offers by now: to `where`, which is "file:PATH", "pmix:NAME" or
 * "dir:NAME". Stays until nssi_rt_close(), which withdraws it. `kind`: what people call it, in a contact file; null:
 * "service".
 *   NESSIE_INVALID_ARGUMENT  also: `where` is none of these; the runtime does not listen, or offers nothing
 *   NESSIE_EXISTS            a service that runs keeps this file, or it is something else than a contact file; another
 *                            process has the launcher's name
 *   NESSIE_IO                the file cannot be written
 *   NESSIE_NOT_FOUND         no directory is named
 *   NESSIE_TIMED_OUT, NESSIE_PEER_LOST  directory or launcher are not to be reached
 *   NESSIE_UNSUPPORTED       no launcher with PMIx started this process, or it keeps no names */
int nssi_rt_announce(nssi_rt_runtime *runtime, const char *where, const char *kind, int32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
