/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays, optional values and linked lists of any type. */
#include "stream.h"

#include <stdlib.h>

enum { kFirstRoomBytes = 4096 }; /* allocated on the word of a stream that does not know its end */

static bool_t code_from(XDR *xdrs, void *values, u_int first, u_int end, const struct nessie_xdr_type *type,
                        unsigned depth) {
  for (u_int i = first; i < end; ++i)
    if (!type->code(xdrs, (char *)values + (size_t)i * type->size, depth)) return FALSE;
  return TRUE;
}

bool_t nessie_xdr_vector(XDR *xdrs, void *values, u_int count, const struct nessie_xdr_type *type, unsigned depth) {
  return code_from(xdrs, values, 0, count, type, depth);
}

/* --- T<> --- */

static bool_t put_array(XDR *xdrs, void *values, u_int *count, u_int most, const struct nessie_xdr_type *type,
                        unsigned depth) {
  if (*count > most || (values == NULL && *count > 0)) return FALSE;
  return xdr_u_int(xdrs, count) && code_from(xdrs, values, 0, *count, type, depth);
}

/* GNU C has types that take no memory; arrays of them are not NULL either. */
static size_t room_of_one(const struct nessie_xdr_type *type) { return type->size == 0 ? 1 : type->size; }

static u_int next_room(const XDR *xdrs, u_int room, u_int count, size_t size) {
  if (nessie_xdr_knows_its_end(xdrs)) return count;
  const size_t first = size < kFirstRoomBytes ? kFirstRoomBytes / size : 1;
  const size_t next = room == 0 ? first : 2 * (size_t)room;
  return next < count ? (u_int)next : count;
}

/* Room for more values, of `count` at most: zeros, which can be freed as they are. */
static bool_t grow(const XDR *xdrs, void *array, u_int *room, u_int count, size_t size) {
  const u_int more = next_room(xdrs, *room, count, size);
  char *old = nessie_xdr_load(array);
  if (more > SIZE_MAX / size) return FALSE;
  char *grown = old == NULL ? calloc(more, size) : realloc(old, more * size);
  if (grown == NULL) return FALSE;
  if (old != NULL) memset(grown + *room * size, 0, (more - *room) * size);
  nessie_xdr_store(array, grown);
  *room = more;
  return TRUE;
}

static bool_t get_array(XDR *xdrs, void *array, u_int *count, u_int most, const struct nessie_xdr_type *type,
                        unsigned depth) {
  u_int size;
  const bool_t is_new = nessie_xdr_load(array) == NULL;
  if (is_new) *count = 0;
  if (!nessie_xdr_get_count(xdrs, &size, most, type->least_bytes)) return FALSE;
  if (!is_new) {
    *count = size;
    return code_from(xdrs, nessie_xdr_load(array), 0, size, type, depth);
  }
  while (*count < size) {
    const u_int done = *count;
    if (!grow(xdrs, array, count, size, room_of_one(type))) return FALSE;
    if (!code_from(xdrs, nessie_xdr_load(array), done, *count, type, depth)) return FALSE;
  }
  return TRUE;
}

bool_t nessie_xdr_array(XDR *xdrs, void *array, u_int *count, u_int most, const struct nessie_xdr_type *type,
                        unsigned depth) {
  void *values = nessie_xdr_load(array);
  if (xdrs->x_op == XDR_ENCODE) return put_array(xdrs, values, count, most, type, depth);
  if (xdrs->x_op == XDR_DECODE) return get_array(xdrs, array, count, most, type, depth);
  if (values != NULL) code_from(xdrs, values, 0, *count, type, depth);
  free(values);
  nessie_xdr_store(array, NULL);
  *count = 0;
  return TRUE;
}

/* --- T * --- */

/* Whether there is one; decoding allocates it, as zeros, or forgets it. */
static bool_t code_presence(XDR *xdrs, void *pointer, size_t size) {
  bool_t is_there = nessie_xdr_load(pointer) != NULL;
  const bool_t was_there = is_there;
  if (!nessie_xdr_bool(xdrs, &is_there)) return FALSE;
  if (xdrs->x_op != XDR_DECODE || (is_there && was_there)) return TRUE;
  nessie_xdr_store(pointer, is_there ? calloc(1, size) : NULL);
  return !is_there || nessie_xdr_load(pointer) != NULL;
}

bool_t nessie_xdr_pointer(XDR *xdrs, void *pointer, const struct nessie_xdr_type *type, unsigned depth) {
  if (xdrs->x_op != XDR_FREE && !code_presence(xdrs, pointer, type->size)) return FALSE;
  void *value = nessie_xdr_load(pointer);
  const bool_t done = value == NULL || type->code(xdrs, value, depth);
  if (xdrs->x_op != XDR_FREE) return done;
  free(value);
  nessie_xdr_store(pointer, NULL);
  return TRUE;
}

/* --- linked lists --- */

static bool_t free_links(XDR *xdrs, char *first, const struct nessie_xdr_chain *chain, unsigned depth) {
  char *rest = nessie_xdr_load(first + chain->next);
  nessie_xdr_store(first + chain->next, NULL);
  chain->code(xdrs, first, depth);
  while (rest != NULL) {
    char *link = rest;
    rest = nessie_xdr_load(link + chain->next);
    chain->code(xdrs, link, depth);
    free(link);
  }
  return TRUE;
}

bool_t nessie_xdr_links(XDR *xdrs, void *first, const struct nessie_xdr_chain *chain, unsigned depth) {
  if (xdrs->x_op == XDR_FREE) return free_links(xdrs, first, chain, depth);
  for (char *link = first; link != NULL; link = nessie_xdr_load(link + chain->next))
    if (!chain->code(xdrs, link, depth) || !code_presence(xdrs, link + chain->next, chain->size)) return FALSE;
  return TRUE;
}
