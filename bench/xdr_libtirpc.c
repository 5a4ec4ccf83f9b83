/* SPDX-License-Identifier: BSD-3-Clause */
#include "xdr_libtirpc.h"

#include <rpc/types.h>
#include <stdlib.h>
/* The order matters. */
#include <rpc/xdr.h>

struct sample {
  u_int id;
  float weight;
  double value;
};

static bool_t xdr_sample(XDR *stream, struct sample *sample) {
  if (!xdr_u_int(stream, &sample->id)) return FALSE;
  if (!xdr_float(stream, &sample->weight)) return FALSE;
  if (!xdr_double(stream, &sample->value)) return FALSE;
  return TRUE;
}

static bool_t code(XDR *stream, enum tirpc_kind kind, char **values, u_int *count) {
  switch (kind) {
    case TIRPC_STRUCTS: return xdr_array(stream, values, count, ~0u, sizeof(struct sample), (xdrproc_t)xdr_sample);
    case TIRPC_DOUBLES: return xdr_array(stream, values, count, ~0u, sizeof(double), (xdrproc_t)xdr_double);
    case TIRPC_INTS: return xdr_array(stream, values, count, ~0u, sizeof(int), (xdrproc_t)xdr_int);
  }
  return FALSE;
}

bool tirpc_encode(enum tirpc_kind kind, const void *values, unsigned count, void *out, size_t room) {
  XDR stream;
  char *at = (char *)values;
  xdrmem_create(&stream, out, (u_int)room, XDR_ENCODE);
  return code(&stream, kind, &at, &count);
}

bool tirpc_decode(enum tirpc_kind kind, const void *message, size_t size, void *values, unsigned count) {
  XDR stream;
  char *at = values;
  u_int found = 0;
  xdrmem_create(&stream, (char *)message, (u_int)size, XDR_DECODE);
  return code(&stream, kind, &at, &found) && found == count;
}

bool tirpc_decode_new(enum tirpc_kind kind, const void *message, size_t size) {
  XDR stream;
  char *values = NULL;
  u_int found = 0;
  xdrmem_create(&stream, (char *)message, (u_int)size, XDR_DECODE);
  const bool decoded = code(&stream, kind, &values, &found);
  free(values);
  return decoded;
}

bool tirpc_code_structs(void *stream, char **values, unsigned *count, unsigned most) {
  return xdr_array(stream, values, count, most, sizeof(struct sample), (xdrproc_t)xdr_sample);
}
