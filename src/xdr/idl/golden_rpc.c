/* SPDX-License-Identifier: BSD-3-Clause */
/* libtirpc's side of the comparison: what rpcgen made of golden.x decodes bytes, and encodes the value again. */
#include "golden_rpc.h"

#include <stddef.h>
#include <string.h>

#define AGAIN(TYPE)                                                                \
  /* Returns the number of bytes in `out`; -1: libtirpc does not take them. */     \
  long again_##TYPE(char *in, size_t size, char *out, size_t room) {               \
    TYPE value;                                                                    \
    XDR stream;                                                                    \
    long written = -1;                                                             \
    memset(&value, 0, sizeof value);                                               \
    xdrmem_create(&stream, in, (u_int)size, XDR_DECODE);                           \
    const int whole = xdr_##TYPE(&stream, &value) && xdr_getpos(&stream) == size;  \
    xdrmem_create(&stream, out, (u_int)room, XDR_ENCODE);                          \
    if (whole && xdr_##TYPE(&stream, &value)) written = (long)xdr_getpos(&stream); \
    xdr_free((xdrproc_t)xdr_##TYPE, (char *)&value);                               \
    return written;                                                                \
  }

AGAIN(everything)
AGAIN(node)
AGAIN(holder)
