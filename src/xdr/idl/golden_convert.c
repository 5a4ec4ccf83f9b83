/* SPDX-License-Identifier: BSD-3-Clause */
#include "golden_side.h"

#include <stdlib.h>
#include <string.h>

const struct golden_type *golden_find(const struct golden_side *side, const char *type) {
  const struct golden_type *at = side->types;
  while (at->name != NULL && strcmp(at->name, type) != 0) ++at;
  return at->name != NULL ? at : NULL;
}

long golden_convert(const struct golden_type *decode, const struct golden_type *encode, char *in, size_t size,
                    char *out, size_t room) {
  XDR stream;
  long written = -1;
  void *value = calloc(1, decode->size);
  xdrmem_create(&stream, in, (u_int)size, XDR_DECODE);
  if (decode->code(&stream, value) && xdr_getpos(&stream) == size) {
    xdrmem_create(&stream, out, (u_int)room, XDR_ENCODE);
    written = encode->code(&stream, value) ? (long)xdr_getpos(&stream) : -2;
  }
  encode->free(value);
  free(value);
  return written;
}
