/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <stdlib.h>

enum {
  kBlockBytes = 4096,      /* swapped at a time: it stays in the nearest cache */
  kFirstRoomBytes = 65536, /* allocated on the word of a stream that does not know its end */
  kPieceBytes = 1 << 30    /* a stream takes a u_int */
};

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* --- how much is left --- */

bool_t nessie_xdr_knows_its_end(const XDR *xdrs) {
  /* There are two kinds: for memory that is aligned, and for other. */
  int32_t memory[2];
  XDR aligned, other;
  xdrmem_create(&aligned, (char *)memory, 4, XDR_DECODE);
  xdrmem_create(&other, (char *)memory + 1, 4, XDR_DECODE);
  return xdrs->x_ops == aligned.x_ops || xdrs->x_ops == other.x_ops;
}

bool_t nessie_xdr_may_hold(XDR *xdrs, uint64_t bytes) {
  if (!nessie_xdr_knows_its_end(xdrs)) return TRUE;
  const u_int at = XDR_GETPOS(xdrs);
  if (bytes > UINT32_MAX - (uint64_t)at) return FALSE;
  if (!XDR_SETPOS(xdrs, at + (u_int)bytes)) return FALSE;
  return XDR_SETPOS(xdrs, at);
}

bool_t nessie_xdr_get_count(XDR *xdrs, u_int *count, u_int most, uint64_t least_bytes) {
  return xdr_u_int(xdrs, count) && *count <= most && nessie_xdr_may_hold(xdrs, *count * least_bytes);
}

/* --- numbers in a stream --- */

/* From or to big-endian. `from` may be `to`. */
static void swap_words(void *to, const void *from, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t word;
    memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
    word = htonl(word);
    memcpy((char *)to + i * sizeof word, &word, sizeof word);
  }
}

static uint64_t big_endian(uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  return word;
#else
  return __builtin_bswap64(word);
#endif
}

static void swap_double_words(void *to, const void *from, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t word;
    memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
    word = big_endian(word);
    memcpy((char *)to + i * sizeof word, &word, sizeof word);
  }
}

static void swap(void *to, const void *from, size_t bytes, enum nessie_xdr_width width) {
  if (width == NESSIE_XDR_WORDS)
    swap_words(to, from, bytes / 4);
  else
    swap_double_words(to, from, bytes / 8);
}

static uint64_t piece_of(uint64_t bytes, enum nessie_xdr_width width) {
  return smaller(bytes, width == NESSIE_XDR_BYTES ? (uint64_t)kPieceBytes : (uint64_t)kBlockBytes);
}

static bool_t put_swapped(XDR *xdrs, const char *from, size_t bytes, enum nessie_xdr_width width) {
  char block[kBlockBytes];
  int32_t *inside = XDR_INLINE(xdrs, (u_int)bytes);
  swap(inside != NULL ? (char *)inside : block, from, bytes, width);
  return inside != NULL || XDR_PUTBYTES(xdrs, block, (u_int)bytes);
}

bool_t nessie_xdr_put(XDR *xdrs, const void *from, uint64_t count, enum nessie_xdr_width width) {
  const char *at = from;
  uint64_t piece;
  for (uint64_t left = count * width; left > 0; left -= piece, at += piece) {
    piece = piece_of(left, width);
    const bool_t done =
        width == NESSIE_XDR_BYTES ? XDR_PUTBYTES(xdrs, at, (u_int)piece) : put_swapped(xdrs, at, (size_t)piece, width);
    if (!done) return FALSE;
  }
  return TRUE;
}

bool_t nessie_xdr_get(XDR *xdrs, void *to, uint64_t count, enum nessie_xdr_width width) {
  char *at = to;
  uint64_t piece;
  for (uint64_t left = count * width; left > 0; left -= piece, at += piece) {
    piece = piece_of(left, width);
    if (!XDR_GETBYTES(xdrs, at, (u_int)piece)) return FALSE;
    if (width != NESSIE_XDR_BYTES) swap(at, at, (size_t)piece, width);
  }
  return TRUE;
}

void *nessie_xdr_get_new(XDR *xdrs, uint64_t count, enum nessie_xdr_width width) {
  uint64_t room = nessie_xdr_knows_its_end(xdrs) ? count : smaller(count, kFirstRoomBytes / width);
  uint64_t done = 0;
  char *bytes = NULL;
  while (bytes == NULL || done < count) {
    char *grown = room * width < SIZE_MAX ? realloc(bytes, (size_t)(room * width) + 1) : NULL;
    if (grown != NULL) bytes = grown;
    if (grown == NULL || !nessie_xdr_get(xdrs, bytes + done * width, room - done, width)) {
      free(bytes);
      return NULL;
    }
    done = room;
    room = smaller(count, 2 * room);
  }
  return bytes;
}
