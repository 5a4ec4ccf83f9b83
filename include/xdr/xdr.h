/* SPDX-License-Identifier: BSD-3-Clause */
/* What the C of `nessie idl` is made of: XDR (RFC 4506) on libtirpc's streams. Link nessie_xdr_c.
 *
 * Each function encodes, decodes or frees as the stream says, as libtirpc's own do, with the same bytes. What is
 * decoded goes where a pointer points; where it is null, memory is allocated that free() takes. Decoding trusts
 * nothing: no more memory is allocated than belongs to bytes that are there, padding is zero, a bool is 0 or 1. FALSE:
 * the stream has ended, or what it holds is wrong; xdr_free() of the value then frees what had been allocated. Freeing
 * never fails. */
#ifndef XDR_XDR_H
#define XDR_XDR_H

#include <rpc/types.h>
#include <rpc/xdr.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Structs and unions lie at most so deep in each other when they are decoded. */
#define NESSIE_XDR_DEPTH 64

/* How values of a type are encoded, decoded and freed. `depth`: how many structs and unions they lie in. */
struct nessie_xdr_type {
  size_t size;
  u_int least_bytes; /* of an encoded value */
  bool_t (*code)(XDR *xdrs, void *value, unsigned depth);
};

/* A struct whose last field points to another of its kind, or nowhere. */
struct nessie_xdr_chain {
  size_t size;
  size_t next;                                            /* where in the struct the pointer is */
  bool_t (*code)(XDR *xdrs, void *value, unsigned depth); /* the other fields */
};

/* FALSE: too deep. Else `depth` is that of the fields. */
static inline bool_t nessie_xdr_enter(const XDR *xdrs, unsigned *depth) {
  return (*depth)++ < NESSIE_XDR_DEPTH || xdrs->x_op != XDR_DECODE;
}

bool_t nessie_xdr_bool(XDR *xdrs, bool_t *value);

/* opaque[size]; opaque<most>; string<most>. Neither a null string nor bytes at null are encoded. */
bool_t nessie_xdr_opaque(XDR *xdrs, char *bytes, u_int size);
bool_t nessie_xdr_bytes(XDR *xdrs, char **bytes, u_int *size, u_int most);
bool_t nessie_xdr_string(XDR *xdrs, char **string, u_int most);

/* T[count], T<most> of numbers of 4 and of 8 bytes. `array`: a T **. */
bool_t nessie_xdr_words(XDR *xdrs, void *numbers, u_int count);
bool_t nessie_xdr_double_words(XDR *xdrs, void *numbers, u_int count);
bool_t nessie_xdr_word_array(XDR *xdrs, void *array, u_int *count, u_int most);
bool_t nessie_xdr_double_word_array(XDR *xdrs, void *array, u_int *count, u_int most);

/* T[count], T<most>, T * of anything else. `array`, `pointer`: a T **. */
bool_t nessie_xdr_vector(XDR *xdrs, void *values, u_int count, const struct nessie_xdr_type *type, unsigned depth);
bool_t nessie_xdr_array(XDR *xdrs, void *array, u_int *count, u_int most, const struct nessie_xdr_type *type,
                        unsigned depth);
bool_t nessie_xdr_pointer(XDR *xdrs, void *pointer, const struct nessie_xdr_type *type, unsigned depth);

/* `first` and all that follow, without recursion. `first` itself is not freed. */
bool_t nessie_xdr_links(XDR *xdrs, void *first, const struct nessie_xdr_chain *chain, unsigned depth);

#ifdef __cplusplus
}
#endif

#endif
