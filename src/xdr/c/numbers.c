/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of numbers, block by block. */
#include "stream.h"

#include <stdlib.h>

static bool_t code_numbers(XDR *xdrs, void *numbers, u_int count, enum nessie_xdr_width width) {
  if (xdrs->x_op == XDR_ENCODE) return nessie_xdr_put(xdrs, numbers, count, width);
  return xdrs->x_op == XDR_FREE || nessie_xdr_get(xdrs, numbers, count, width);
}

static bool_t put_array(XDR *xdrs, void *array, u_int *count, u_int most, enum nessie_xdr_width width) {
  const void *numbers = nessie_xdr_load(array);
  if (*count > most || (numbers == NULL && *count > 0)) return FALSE;
  return xdr_u_int(xdrs, count) && nessie_xdr_put(xdrs, numbers, *count, width);
}

static bool_t get_array(XDR *xdrs, void *array, u_int *count, u_int most, enum nessie_xdr_width width) {
  void *numbers = nessie_xdr_load(array);
  u_int size;
  *count = 0;
  if (!nessie_xdr_get_count(xdrs, &size, most, width)) return FALSE;
  if (size > 0 && numbers != NULL && !nessie_xdr_get(xdrs, numbers, size, width)) return FALSE;
  if (size > 0 && numbers == NULL) {
    numbers = nessie_xdr_get_new(xdrs, size, width);
    if (numbers == NULL) return FALSE;
    nessie_xdr_store(array, numbers);
  }
  *count = size;
  return TRUE;
}

static bool_t code_array(XDR *xdrs, void *array, u_int *count, u_int most, enum nessie_xdr_width width) {
  if (xdrs->x_op == XDR_ENCODE) return put_array(xdrs, array, count, most, width);
  if (xdrs->x_op == XDR_DECODE) return get_array(xdrs, array, count, most, width);
  free(nessie_xdr_load(array));
  nessie_xdr_store(array, NULL);
  *count = 0;
  return TRUE;
}

bool_t nessie_xdr_words(XDR *xdrs, void *numbers, u_int count) {
  return code_numbers(xdrs, numbers, count, NESSIE_XDR_WORDS);
}
bool_t nessie_xdr_double_words(XDR *xdrs, void *numbers, u_int count) {
  return code_numbers(xdrs, numbers, count, NESSIE_XDR_DOUBLE_WORDS);
}
bool_t nessie_xdr_word_array(XDR *xdrs, void *array, u_int *count, u_int most) {
  return code_array(xdrs, array, count, most, NESSIE_XDR_WORDS);
}
bool_t nessie_xdr_double_word_array(XDR *xdrs, void *array, u_int *count, u_int most) {
  return code_array(xdrs, array, count, most, NESSIE_XDR_DOUBLE_WORDS);
}
