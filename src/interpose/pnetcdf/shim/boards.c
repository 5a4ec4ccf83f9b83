/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "boards.h"

#include "inside.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const nessie_board *boards[NESSIE_MOST_SERVERS];
static nessie_board_writes *writes[NESSIE_MOST_SERVERS];
static int board_count, may_write = 1;

/* NULL: cannot be had so. */
static void *map(const char *path, size_t size, bool to_write) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, (to_write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (fd < 0) return NULL;
  void *mapped = mmap(NULL, size, to_write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  return mapped == MAP_FAILED ? NULL : mapped;
}

static void map_board(char *path, size_t size) {
  const nessie_board *board = map(path, sizeof *board, false);
  if (board == NULL || board->magic != NESSIE_BOARD_MAGIC) return;
  const size_t length = strlen(path);
  (void)snprintf(path + length, size - length, "%s", NESSIE_BOARD_COUNTS_SUFFIX);
  nessie_board_writes *counts = map(path, sizeof *counts, true);
  if (counts == NULL) {
    may_write = 0; /* it is another user's */
    counts = map(path, sizeof *counts, false);
  }
  writes[board_count] = counts;
  boards[board_count++] = board;
}

void nessie_map_boards(void) {
  const char *text = getenv(NESSIE_BOARD_VARIABLE);
  char path[4096];
  char *folder = NULL;
  const long count = text == NULL ? 0 : strtol(text, &folder, 10);
  for (long i = 0; i < count && i < NESSIE_MOST_SERVERS && folder != NULL && *folder == ' '; ++i) {
    const int length = snprintf(path, sizeof path, "%s/board.%ld", folder + 1, i);
    if (length < 0 || (size_t)length + sizeof NESSIE_BOARD_COUNTS_SUFFIX > sizeof path) break;
    map_board(path, sizeof path);
  }
}

int nessie_board_count(void) { return board_count; }

const nessie_board *nessie_board_at(int index) { return boards[index]; }

uint32_t nessie_look(const uint32_t *word) {
  return atomic_load_explicit((const _Atomic uint32_t *)word, memory_order_acquire);
}

bool nessie_is_on(const nessie_board *board, nessie_board_place file) {
  if (file.inode == 0) return nessie_look(&board->files) != 0;
  return nessie_board_lists(board, file.device, file.inode) != 0;
}

bool nessie_notes_writers(void) { return board_count > 0 && may_write && !nessie_shim_is_inside(); }

void nessie_note_writer(nessie_board_place file) {
  const uint64_t bit = nessie_board_bit_of(file.device, file.inode);
  for (int i = 0; i < board_count; ++i) {
    uint64_t *word = &writes[i]->opened[nessie_board_word_of(file.device, file.inode)];
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == 0) __atomic_fetch_or(word, bit, __ATOMIC_RELEASE);
  }
}

const nessie_boards *nessie_seen_boards(void) {
  static nessie_boards seen = {boards, writes, 0, 0};
  seen.may_write = may_write;
  seen.count = board_count;
  return &seen;
}
