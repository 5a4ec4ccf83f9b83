/* SPDX-License-Identifier: BSD-3-Clause */
/* How MPI begins and ends. Each is called by our MPI_X and PMPI_X.
 *
 * A program that uses sessions does not call MPI_Init, and without it MPICH has no communicator of the whole job, which
 * the split needs. So MPI_Init is called for it, and MPI_Finalize at the end of its last session; MPI_Initialized and
 * MPI_Finalized do not tell. */
#include "functions.h"

#include <pthread.h>
#include <stdatomic.h>

enum { kNotYet, kBegun, kEnded };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of what sessions have begun */
static atomic_bool for_sessions; /* MPI_Init was not called by the program; any thread may ask what has begun */
static atomic_int by_program;    /* what it has called itself, after that */
static int sessions;

static int end(void) { return splitter_finish_beside_aborted() ? MPI_SUCCESS : native_Finalize(); }

static int end_after_last(void) { return sessions == 0 && by_program != kBegun ? end() : MPI_SUCCESS; }

#ifdef SPLIT_HAS_Session_init

static int begin_for_sessions(void) {
  int known = 0, provided = 0;
  native_Initialized(&known);
  if (known) return MPI_SUCCESS;
  const int code = native_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  for_sessions = code == MPI_SUCCESS;
  if (for_sessions) splitter_begin();
  return code;
}

int split_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session) {
  pthread_mutex_lock(&mutex);
  int code = begin_for_sessions();
  if (code == MPI_SUCCESS) code = native_Session_init(info, handler, session);
  sessions += code == MPI_SUCCESS;
  pthread_mutex_unlock(&mutex);
  return code;
}

int split_Session_finalize(MPI_Session *session) {
  pthread_mutex_lock(&mutex);
  int code = native_Session_finalize(session);
  sessions -= code == MPI_SUCCESS;
  if (code == MPI_SUCCESS && for_sessions) code = end_after_last();
  pthread_mutex_unlock(&mutex);
  return code;
}

#endif

/* Whether the program's MPI_Init is to find that MPI has begun for its sessions. */
static bool begins_after_sessions(void) {
  pthread_mutex_lock(&mutex);
  const bool first = for_sessions && by_program == kNotYet;
  if (first) by_program = kBegun;
  pthread_mutex_unlock(&mutex);
  return first;
}

int split_Init(int *argc, char ***argv) {
  if (begins_after_sessions()) return MPI_SUCCESS;
  splitter_part_windows();
  const int code = native_Init(argc, argv);
  if (code == MPI_SUCCESS) splitter_begin();
  return code;
}

int split_Init_thread(int *argc, char ***argv, int required, int *provided) {
  if (begins_after_sessions()) return native_Query_thread(provided);
  splitter_part_windows();
  const int code = native_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) splitter_begin();
  return code;
}

int split_Finalize(void) {
  int code = MPI_SUCCESS;
  if (!for_sessions) return end();
  pthread_mutex_lock(&mutex);
  if (by_program == kBegun) {
    by_program = kEnded;
    code = end_after_last();
  }
  pthread_mutex_unlock(&mutex);
  return code;
}

int split_Initialized(int *flag) {
  *flag = 0; /* where no MPI is loaded */
  const int code = native_Initialized(flag);
  if (for_sessions) *flag = by_program != kNotYet;
  return code;
}

int split_Finalized(int *flag) {
  *flag = 0;
  const int code = native_Finalized(flag);
  if (for_sessions) *flag = by_program == kEnded;
  if (splitter_has_left()) *flag = 1;
  return code;
}
