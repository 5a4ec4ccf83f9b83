/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients and servers of NSSI share, as in Trios 12. Functions return NSSI_OK or another code; nssi_last_error()
 * has a sentence that says more. Any thread may call any function, unless said. */
#ifndef TRIOS_NSSI_RPC_H
#define TRIOS_NSSI_RPC_H

#include "Trios_nnti.h"
#include "Trios_nssi_debug.h"
#include "Trios_nssi_fprint_types.h"
#include "Trios_nssi_types.h"
#include "Trios_nssi_xdr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Programs that want NNTI's handle of a transport that is open declare `extern NNTI_transport_t
 * transports[NSSI_RPC_COUNT];`, where it has the transport's number. The last nssi_fini() closes what was opened by it.
 *
 * Opens a transport, and listens at a URL of its own; `url` is passed over. Once more: counted, nothing else.
 * NSSI_ENOTSUP: this machine does not have it. */
int nssi_rpc_init(const nssi_rpc_transport rpc_transport, const nssi_rpc_encode rpc_encode, const char *url)
    TRIOS_SYMBOL(nssi_rpc_init);
/* Closes it, when called as often. Calls in progress end with NSSI_ECANCELED. */
int nssi_rpc_fini(const nssi_rpc_transport rpc_transport) TRIOS_SYMBOL(nssi_rpc_fini);
/* Where this process can be reached; NSSI_URL_LEN bytes are enough. NSSI_EMSGSIZE: `maxlen` is not. */
int nssi_get_url(const nssi_rpc_transport rpc_transport, char *url, uint32_t maxlen) TRIOS_SYMBOL(nssi_get_url);

/* About the last error of this thread; valid until the next one. Nessie's. */
const char *nssi_last_error(void) TRIOS_SYMBOL(nssi_last_error);

/* A copy for free(); NULL: no memory. */
void *memdup(void *src, int size) TRIOS_SYMBOL(memdup);

#ifdef __cplusplus
}
#endif
#endif
