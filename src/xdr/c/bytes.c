/* SPDX-License-Identifier: BSD-3-Clause */
/* bool, opaque and string. */
#include "stream.h"

#include <stdlib.h>

static u_int padding(u_int size) { return (4 - size % 4) % 4; }

static bool_t put_padding(XDR *xdrs, u_int size) {
  static const char zeros[4];
  return padding(size) == 0 || XDR_PUTBYTES(xdrs, zeros, padding(size));
}

static bool_t get_padding(XDR *xdrs, u_int size) {
  char bytes[4] = {0};
  if (padding(size) != 0 && !XDR_GETBYTES(xdrs, bytes, padding(size))) return FALSE;
  return bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 0;
}

bool_t nessie_xdr_bool(XDR *xdrs, bool_t *value) {
  if (xdrs->x_op != XDR_DECODE) return xdr_bool(xdrs, value);
  u_int word;
  if (!xdr_u_int(xdrs, &word) || word > 1) return FALSE;
  *value = word == 1 ? TRUE : FALSE;
  return TRUE;
}

bool_t nessie_xdr_opaque(XDR *xdrs, char *bytes, u_int size) {
  if (xdrs->x_op == XDR_FREE) return TRUE;
  if (xdrs->x_op == XDR_ENCODE) return nessie_xdr_put(xdrs, bytes, size, NESSIE_XDR_BYTES) && put_padding(xdrs, size);
  return nessie_xdr_get(xdrs, bytes, size, NESSIE_XDR_BYTES) && get_padding(xdrs, size);
}

static bool_t put_bytes(XDR *xdrs, char *bytes, size_t size, u_int most) {
  if (size > most || (bytes == NULL && size > 0)) return FALSE;
  u_int count = (u_int)size;
  return xdr_u_int(xdrs, &count) && nessie_xdr_opaque(xdrs, bytes, count);
}

/* Into memory of the caller's, or new. */
static bool_t get_some(XDR *xdrs, char **bytes, u_int size) {
  if (*bytes != NULL) return nessie_xdr_opaque(xdrs, *bytes, size);
  *bytes = nessie_xdr_get_new(xdrs, size, NESSIE_XDR_BYTES);
  return *bytes != NULL && get_padding(xdrs, size);
}

static void free_bytes(char **bytes) {
  free(*bytes);
  *bytes = NULL;
}

static bool_t get_bytes(XDR *xdrs, char **bytes, u_int *size, u_int most) {
  u_int count;
  *size = 0;
  if (!nessie_xdr_get_count(xdrs, &count, most, 1)) return FALSE;
  if (count > 0 && !get_some(xdrs, bytes, count)) return FALSE;
  *size = count;
  return TRUE;
}

bool_t nessie_xdr_bytes(XDR *xdrs, char **bytes, u_int *size, u_int most) {
  if (xdrs->x_op == XDR_ENCODE) return put_bytes(xdrs, *bytes, *size, most);
  if (xdrs->x_op == XDR_DECODE) return get_bytes(xdrs, bytes, size, most);
  free_bytes(bytes);
  *size = 0;
  return TRUE;
}

static bool_t get_string(XDR *xdrs, char **string, u_int most) {
  u_int size;
  if (!nessie_xdr_get_count(xdrs, &size, most, 1) || !get_some(xdrs, string, size)) return FALSE;
  (*string)[size] = '\0';
  return TRUE;
}

bool_t nessie_xdr_string(XDR *xdrs, char **string, u_int most) {
  if (xdrs->x_op == XDR_ENCODE) return *string != NULL && put_bytes(xdrs, *string, strlen(*string), most);
  if (xdrs->x_op == XDR_DECODE) return get_string(xdrs, string, most);
  free_bytes(string);
  return TRUE;
}
