/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. What is staged takes calls of MPI that all processes make together; so all must know whether all have
 * this library before the first of them. Each that has it sets a bit beside the first board. A process counts when MPI
 * is loaded: the wrapper of a program, a shell mostly, has the same number, and may have the library where the program
 * has not. An interpreter loads MPI late. Where nobody's bit is set, nobody can set any, and nothing is known. */
#include "ranks.h"

#include "boards.h"
#include "inside.h"
#include "library.h"

#include <interpose/embedded/embedded_abi.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* How launchers say which process of which job this is, of how many on this node. */
static const struct {
  const char *job, *rank, *size;
} launchers[] = {{"PMIX_NAMESPACE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}, /* Open MPI */
                 {"", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, /* Hydra: its jobs have no names */
                 {"SLURM_STEP_ID", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"}};

static uint64_t job;   /* its first rank's bit, before it is cut to the size of the table */
static int rank, size; /* 0 ranks: not known */
static atomic_bool may_come;

static uint64_t hash_of(const char *text) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (; *text != '\0'; ++text) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

static void ask_launcher(void) {
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers && size == 0; ++i) {
    const char *name = getenv(launchers[i].job), *number = getenv(launchers[i].rank);
    const char *count =
        getenv(launchers[i].size); /* Slurm's "3,2" is of several nodes, and does not say which is ours */
    if (number == NULL || count == NULL || strchr(count, ',') != NULL) continue;
    job = hash_of(name == NULL ? "" : name);
    rank = atoi(number);
    size = atoi(count);
  }
}

static _Atomic uint32_t *word_of(int of_rank, uint32_t *bit) {
  const uint64_t place = (job + (uint64_t)of_rank) % NESSIE_BOARD_RANKS;
  *bit = 1u << place % 32;
  return (_Atomic uint32_t *)&nessie_seen_boards()->writes[0]->ranks[place / 32];
}

static bool is_known(void) { return size > 0 && nessie_board_count() > 0 && nessie_seen_boards()->writes[0] != NULL; }

static void begin_as_rank(void) {
  const char *servers = getenv("NESSIE_SERVERS");
  if (servers == NULL || *servers == '\0') return;
  ask_launcher();
  if (!is_known() || !nessie_seen_boards()->may_write) return;
  const bool is_foreign = nessie_has_mpi() && nessie_foreign_library() != NULL;
  (void)dlerror(); /* what we looked for in vain is no concern of the program's */
  atomic_store(&may_come, !is_foreign);
  nessie_come_as_rank();
}

void nessie_come_as_rank(void) {
  if (!atomic_load_explicit(&may_come, memory_order_relaxed) || !nessie_has_mpi()) return;
  uint32_t bit = 0;
  _Atomic uint32_t *word = word_of(rank, &bit);
  if (!nessie_has_pnetcdf_inside()) atomic_fetch_or(word, bit);
  atomic_store(&may_come, false);
}

__attribute__((constructor)) static void begin(void) {
  const int error = errno;
  nessie_map_boards();
  begin_as_rank();
  errno = error;
}

static bool has_come(int other) {
  uint32_t bit = 0;
  const _Atomic uint32_t *word = word_of(other, &bit);
  return (atomic_load(word) & bit) != 0;
}

int nessie_missing_rank(void) {
  int missing = -1, come = 0;
  for (int other = is_known() ? size - 1 : -1; other >= 0; --other)
    if (has_come(other))
      ++come;
    else
      missing = other;
  return come > 0 ? missing : -1;
}

NESSIE_EXPORT int nessie_pnetcdf_missing_rank(void) {
  nessie_come_as_rank();
  return nessie_missing_rank();
}
