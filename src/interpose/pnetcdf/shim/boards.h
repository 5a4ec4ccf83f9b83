/* SPDX-License-Identifier: BSD-3-Clause */
/* The servers' boards (services/staging/board.h), as this process sees them. What is said here is async-signal-safe. */
#ifndef NESSIE_PNETCDF_BOARDS_H
#define NESSIE_PNETCDF_BOARDS_H

#include "../engine_abi.h"

#include <services/staging/board.h>

#include <stdbool.h>
#include <stdint.h>

/* Before main(), when there is one thread. Programs that do not see the folder go on without. */
void nessie_map_boards(void);
int nessie_board_count(void);
const nessie_board *nessie_board_at(int index);

/* Reads what the server may be changing. */
uint32_t nessie_look(const uint32_t *word);

/* Whether the file is on the board; zeros: whether any is. */
bool nessie_is_on(const nessie_board *board, nessie_board_place file);

/* Tells those who keep copies of what they read that somebody may write to the file from now on, without PnetCDF. */
void nessie_note_writer(nessie_board_place file);
/* Whether they can be told by this process, and want to be: what the engine writes is counted. */
bool nessie_notes_writers(void);

/* For the engine. */
const nessie_boards *nessie_seen_boards(void);

#endif
