/* SPDX-License-Identifier: BSD-3-Clause */
/* The board: which files a staging server may still have something of that is not in the file. Every program of the run
 * maps it, to read, so that opening any other file costs nothing; who opens one that is on the board asks at the
 * server's door, and goes on when the file is whole. C, because the library that is preloaded into programs reads it.
 *
 * Another server may take the place of one that has died. It has the same board, with its own door; what its
 * predecessor had stays on it until it is known what of that is kept.
 *
 * In the machine's byte order. Only the server writes. A place is taken by its device first, and counts from when its
 * inode is there; it is given back by its inode being 0.
 *
 * Beside it, in a file of its own, are counts of writes, which programs raise as well: who has kept a copy of what he
 * read knows by them whether it still holds. A file's is at its nessie_board_count_of(). Writes past PnetCDF are not
 * counted: a file that was opened for them has its bit in `opened` for the rest of the run, and nobody keeps copies.
 * One to which native PnetCDF writes, which is counted, has its bit in `beside` before: servers keep no pages of it.
 * When all servers have died, one that goes on natively, as they held nothing of it, has its bit in `survivors`. */
#ifndef NESSIE_STAGING_BOARD_H
#define NESSIE_STAGING_BOARD_H

#include <stdint.h>

#define NESSIE_BOARD_MAGIC 0x3844524253534e45u /* changes with the layout */
#define NESSIE_BOARD_PLACES 4096
#define NESSIE_MOST_SERVERS 64                /* of one run: each program maps a board of each */
#define NESSIE_BOARD_VARIABLE "NESSIE_BOARDS" /* "2 /folder": boards board.0 and board.1 in /folder */

typedef struct {
  uint64_t device, inode;
} nessie_board_place;

typedef struct nessie_board {
  uint64_t magic;
  uint32_t files;       /* on the board; 0: nobody needs to look */
  uint32_t used;        /* places that may be taken, from the first one on */
  uint32_t overflow;    /* files that found no place: any file may be one of them */
  uint32_t alive;       /* raised by the thread that does the server's work, four times a second while anybody waits */
  uint64_t natives;     /* how many files went native: they are written without being counted */
  uint64_t network;     /* inode of the network name space in which the door can be reached; 0: not known */
  uint64_t patience_ms; /* whoever has waited for so long, with `alive` as it was, gives the server up */
  uint32_t failed;      /* files that are not on the board any more, and are not whole */
  uint32_t kept;        /* of `files`, those that outlive the server: if it is gone, another one takes its place soon */
  char door[104];       /* name of the abstract socket, ending in a zero */
  nessie_board_place places[NESSIE_BOARD_PLACES];
} nessie_board;

/* Whether the file is on the board. Async-signal-safe. */
static inline int nessie_board_lists(const nessie_board *board, uint64_t device, uint64_t inode) {
  if (__atomic_load_n(&board->files, __ATOMIC_ACQUIRE) == 0) return 0;
  if (__atomic_load_n(&board->overflow, __ATOMIC_ACQUIRE) != 0) return 1;
  const uint32_t used = __atomic_load_n(&board->used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used && i < NESSIE_BOARD_PLACES; ++i) {
    const nessie_board_place *place = &board->places[i];
    if (__atomic_load_n(&place->inode, __ATOMIC_ACQUIRE) == inode &&
        __atomic_load_n(&place->device, __ATOMIC_RELAXED) == device)
      return 1;
  }
  return 0;
}

#define NESSIE_BOARD_COUNTS_SUFFIX ".writes" /* of the board's name */
#define NESSIE_BOARD_COUNTS 4096
#define NESSIE_BOARD_BITS (1u << 18)
#define NESSIE_BOARD_RANKS (1u << 17)

/* Counts are raised after data have come to where any later read finds them, and before the write is known to be over.
 * Ranks, of the first board only: a bit for each process of a job that has Nessie's library in front of its PnetCDF. It
 * is set before MPI_Init ends, and never cleared. */
typedef struct nessie_board_writes {
  uint64_t counts[NESSIE_BOARD_COUNTS];
  uint64_t opened[NESSIE_BOARD_BITS / 64];
  uint64_t beside[NESSIE_BOARD_BITS / 64];
  uint64_t survivors[NESSIE_BOARD_BITS / 64];
  uint32_t ranks[NESSIE_BOARD_RANKS / 32];
} nessie_board_writes;

static inline uint64_t nessie_board_hash(uint64_t device, uint64_t inode) {
  return (inode ^ device << 32) * 0x9E3779B97F4A7C15u; /* its upper bits are the good ones */
}

static inline uint32_t nessie_board_count_of(uint64_t device, uint64_t inode) {
  return (uint32_t)(nessie_board_hash(device, inode) >> 52);
}

/* The word, and the bit in it, of a file in a set of bits. */
static inline uint32_t nessie_board_word_of(uint64_t device, uint64_t inode) {
  return (uint32_t)(nessie_board_hash(device, inode) >> 46) / 64;
}
static inline uint64_t nessie_board_bit_of(uint64_t device, uint64_t inode) {
  return (uint64_t)1 << (nessie_board_hash(device, inode) >> 46) % 64;
}

/* At the door (SOCK_SEQPACKET): a nessie_board_place; zeros: all files. The answer comes when what was put before is in
 * the file, or has failed. Whoever is sent away without it comes again a moment later. */
enum { NESSIE_DOOR_SETTLED = '+' };

#endif
