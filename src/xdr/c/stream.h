/* SPDX-License-Identifier: BSD-3-Clause */
/* What the functions of <xdr/xdr.h> share. */
#ifndef NESSIE_XDR_STREAM_H
#define NESSIE_XDR_STREAM_H

#include <stdint.h>
#include <string.h>
#include <xdr/xdr.h>

/* Numbers of so many bytes are big-endian in a stream. Bytes are as they are. */
enum nessie_xdr_width { NESSIE_XDR_BYTES = 1, NESSIE_XDR_WORDS = 4, NESSIE_XDR_DOUBLE_WORDS = 8 };

/* xdrmem's streams know how many bytes are left; others are asked only for what is needed next. */
bool_t nessie_xdr_knows_its_end(const XDR *xdrs);

/* FALSE: so many bytes are not left. A stream that does not know says TRUE. */
bool_t nessie_xdr_may_hold(XDR *xdrs, uint64_t bytes);

bool_t nessie_xdr_put(XDR *xdrs, const void *from, uint64_t count, enum nessie_xdr_width width);
bool_t nessie_xdr_get(XDR *xdrs, void *to, uint64_t count, enum nessie_xdr_width width);

/* Gets into new memory, of one byte more than that; free() it. Null: the stream has ended, or memory has. */
void *nessie_xdr_get_new(XDR *xdrs, uint64_t count, enum nessie_xdr_width width);

/* Decodes a count, of what takes at least `least_bytes` each. FALSE: more than `most`, or than may be left. */
bool_t nessie_xdr_get_count(XDR *xdrs, u_int *count, u_int most, uint64_t least_bytes);

/* A pointer to any type, at `where`. */
static inline void *nessie_xdr_load(const void *where) {
  void *pointer;
  memcpy(&pointer, where, sizeof pointer);
  return pointer;
}
static inline void nessie_xdr_store(void *where, void *pointer) { memcpy(where, &pointer, sizeof pointer); }

#endif
