/* SPDX-License-Identifier: BSD-3-Clause */
/* What was made of golden.x in C: by us, and by rpcgen. Both have the same types of the same names: a value that one of
 * them has decoded can be encoded and freed by the other. */
#ifndef GOLDEN_SIDE_H
#define GOLDEN_SIDE_H

#include <rpc/types.h>
#include <rpc/xdr.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct golden_type {
  const char *name;
  size_t size;
  bool_t (*code)(XDR *xdrs, void *value);
  void (*free)(void *value); /* by xdr_free() */
};

struct golden_field {
  const char *name;
  size_t offset, size;
};

/* The last of each has no name. */
struct golden_side {
  const struct golden_type *types;
  const struct golden_field *fields;
};

extern const struct golden_side golden_nessie, golden_rpcgen;

const struct golden_type *golden_find(const struct golden_side *side, const char *type);

/* Decodes all of `in` by one side, encodes and frees the value by the other. Returns the bytes in `out`; -1: the bytes
 * were refused; -2: the value was. */
long golden_convert(const struct golden_type *decode, const struct golden_type *encode, char *in, size_t size,
                    char *out, size_t room);

#ifdef __cplusplus
}
#endif

#endif
