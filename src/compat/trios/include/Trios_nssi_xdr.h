/* SPDX-License-Identifier: BSD-3-Clause */
/* How the arguments and results of operations are encoded, as in Trios 12. */
#ifndef TRIOS_NSSI_XDR_H
#define TRIOS_NSSI_XDR_H

#include "Trios_nssi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Nothing needs to be called before or after: the first three return NSSI_OK. */
int nssi_xdr_init(void) TRIOS_SYMBOL(nssi_xdr_init);
int nssi_xdr_fini(void) TRIOS_SYMBOL(nssi_xdr_fini);
int register_service_encodings(void) TRIOS_SYMBOL(register_service_encodings);
/* Forgets what was registered. */
int nssi_clear_xdr_encodings(void) TRIOS_SYMBOL(nssi_clear_xdr_encodings);

/* Says how an operation's arguments and result are encoded; once more: anew. `encode_data` is not used: bulk data is
 * raw bytes. NSSI_EINVAL: one of the others is NULL. */
int nssi_register_xdr_encoding(int opcode, xdrproc_t encode_args, xdrproc_t encode_data, xdrproc_t encode_result)
    TRIOS_SYMBOL(nssi_register_xdr_encoding);
/* NSSI_ENOENT: nothing is registered for `opcode`. */
int nssi_lookup_xdr_encoding(int opcode, xdrproc_t *encode_args, xdrproc_t *encode_data, xdrproc_t *encode_result)
    TRIOS_SYMBOL(nssi_lookup_xdr_encoding);

#ifdef __cplusplus
}
#endif
#endif
