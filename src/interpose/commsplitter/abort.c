/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Abort that ends the program that calls it, and leaves the others alone: NESSIE_COMMSPLITTER_ABORT=program.
 *
 * Each process has a thread that sleeps until its program is given up, and then ends the process as one that the
 * launcher does not mind: after telling it, in the launcher's own words, that all is well. MPI_Finalize of the other
 * programs would wait for it without an end; so processes meet at a board in shared memory before it, and where a
 * program is missing they end like that themselves. */
#include "callbacks.h"
#include "functions.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kRunning = 0, kAborted = 1 << 16 }; /* and the code, which is the exit code of a process */

typedef struct {
  _Atomic unsigned changes; /* wakes who waits for one */
  _Atomic int finishing;    /* processes in MPI_Finalize */
  _Atomic int aborted;      /* programs */
  _Atomic int programs[];   /* by their lowest ranks: kRunning, or kAborted and the code */
} Board;

static Board *board;          /* NULL: MPI_Abort ends the job */
static MPI_Comm own;          /* the program's communicator */
static int number, processes; /* the program's; of the job */
static bool is_finishing, has_left;

/* --- the launchers ------------------------------------------------------------------------------------------------------- */

#if defined(OPEN_MPI)

static void *of_pmix(const char *name) {
  void *library = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD);
  return library == NULL ? NULL : dlsym(library, name);
}

static bool launcher_is_known(void) {
  return getenv("OMPI_COMM_WORLD_RANK") != NULL && of_pmix("PMIx_Initialized") != NULL &&
         of_pmix("PMIx_Finalize") != NULL;
}

/* PMIx counts how often it was begun. */
static void leave_launcher(void) {
  int (*is_begun)(void), (*finalize)(const void *, size_t);
  void *first = of_pmix("PMIx_Initialized"), *second = of_pmix("PMIx_Finalize");
  memcpy(&is_begun, &first, sizeof first);
  memcpy(&finalize, &second, sizeof second);
  for (int i = 0; i < 100 && is_begun() != 0; ++i) finalize(NULL, 0);
}

/* Open MPI's mpiexec ends the job for any other. */
static int exit_code(int code) {
  (void)code;
  return 0;
}

#else

static bool launcher_is_known(void) { return getenv("PMI_FD") != NULL; }

static void leave_launcher(void) {
  static const char word[] = "cmd=finalize\n";
  const int launcher = atoi(getenv("PMI_FD"));
  char answer[64];
  if (write(launcher, word, sizeof word - 1) < 0 || read(launcher, answer, sizeof answer) < 0)
    perror("nessie: CommSplitter: the launcher does not answer");
}

static int exit_code(int code) { return code; }

#endif

_Noreturn static void leave(int code) {
  splitter_end_windows();
  leave_launcher();
  _exit(exit_code(code));
}

/* --- the board ----------------------------------------------------------------------------------------------------------- */

static void wait_for_change(unsigned seen) { syscall(SYS_futex, &board->changes, FUTEX_WAIT, seen, NULL, NULL, 0); }

static void tell_change(void) {
  atomic_fetch_add(&board->changes, 1);
  syscall(SYS_futex, &board->changes, FUTEX_WAKE, processes * 2, NULL, NULL, 0);
}

static void *watch(void *nothing) {
  (void)nothing;
  for (;;) {
    const unsigned seen = atomic_load(&board->changes);
    const int state = atomic_load(&board->programs[number]);
    if (state != kRunning) leave(state & ~kAborted);
    wait_for_change(seen);
  }
}

static bool start_watching(void) {
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&thread, NULL, watch, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started && pthread_detach(thread) == 0;
}

static size_t board_bytes(void) { return sizeof(Board) + (size_t)processes * sizeof(int); }

static Board *map(const char *name, int flags) {
  const int file = shm_open(name, O_RDWR | O_CLOEXEC | flags, 0600);
  if (file < 0) return NULL;
  void *memory = MAP_FAILED;
  if (ftruncate(file, (off_t)board_bytes()) == 0)
    memory = mmap(NULL, board_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? NULL : memory;
}

/* The first process of the job makes the board, and tells its name; processes of other nodes do not find it. */
static void share_board(char *name, int length, MPI_Comm world, int rank) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (rank == 0) {
    snprintf(name, (size_t)length, "/nessie-abort-%d-%llx%lx", (int)getpid(), (unsigned long long)now.tv_sec,
             now.tv_nsec);
    board = map(name, O_CREAT | O_EXCL);
  }
  native_Bcast(name, length, splitter_byte(), 0, world);
  if (rank != 0) board = map(name, 0);
}

/* All processes have it, or nobody does. */
static bool all_have(bool mine, MPI_Comm world) {
  char *each = calloc((size_t)processes, 1), one = mine;
  if (each == NULL) return splitter_give_up("no memory for one byte of each process"), false;
  bool all = true;
  native_Allgather(&one, 1, splitter_byte(), each, 1, splitter_byte(), world);
  for (int i = 0; i < processes; ++i) all = all && each[i];
  free(each);
  return all;
}

void splitter_prepare_abort(MPI_Comm world, MPI_Comm program, int colour) {
  char name[64] = "";
  int rank = 0;
  native_Comm_rank(world, &rank);
  native_Comm_size(world, &processes);
  own = program, number = colour;
  share_board(name, sizeof name, world, rank);
  const bool all = all_have(board != NULL && launcher_is_known(), world);
  if (rank == 0) shm_unlink(name);
  if (all && !start_watching()) return splitter_give_up("no thread that waits for MPI_Abort");
  if (all) return;
  board = NULL;
  if (rank == 0)
    splitter_say("MPI_Abort ends the whole job: processes are on several nodes, or the launcher is unknown");
}

/* --- what is called ------------------------------------------------------------------------------------------------------ */

void splitter_abort_program(int code) {
  if (board == NULL || !splitter_is_on() || is_finishing) return;
  int running = kRunning;
  splitter_say("MPI_Abort(%d) ends this program; the job's others go on", code);
  fflush(NULL);
  atomic_compare_exchange_strong(&board->programs[number], &running, kAborted | (code & 0xff));
  atomic_fetch_add(&board->aborted, running == kRunning);
  tell_change();
  for (;;) pause(); /* the thread that watches ends this process */
}

/* Meets the others. False: all are there, and none of them can be aborted any more. */
static bool some_are_missing(void) {
  is_finishing = true;
  atomic_fetch_add(&board->finishing, 1);
  tell_change();
  for (;;) {
    const unsigned seen = atomic_load(&board->changes);
    if (atomic_load(&board->aborted) > 0) return true;
    if (atomic_load(&board->finishing) == processes) return false;
    wait_for_change(seen);
  }
}

bool splitter_finish_beside_aborted(void) {
  if (board == NULL || !splitter_is_on()) return false;
  if (!some_are_missing()) return false;
  remove_attributes(splitter_self());
  native_Barrier(own);
  leave_launcher();
  has_left = true;
  return true;
}

bool splitter_has_left(void) { return has_left; }
