/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays through libtirpc's codec, with the functions that rpcgen makes of
 *     struct sample { unsigned int id; float weight; double value; };
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tirpc_kind { TIRPC_STRUCTS, TIRPC_DOUBLES, TIRPC_INTS };

/* Encodes an array, its count before it. False: `room` is too small. */
bool tirpc_encode(enum tirpc_kind kind, const void *values, unsigned count, void *out, size_t room);
/* Decodes into memory for `count` elements. False: they are not in the message. */
bool tirpc_decode(enum tirpc_kind kind, const void *message, size_t size, void *values, unsigned count);
/* The same, into memory that it allocates, and frees again. */
bool tirpc_decode_new(enum tirpc_kind kind, const void *message, size_t size);
/* Structs through one of libtirpc's own streams (an XDR *); decoding, into memory that is there, `most` at the most. */
bool tirpc_code_structs(void *stream, char **values, unsigned *count, unsigned most);

#ifdef __cplusplus
}
#endif
