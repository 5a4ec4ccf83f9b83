/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "splitter.h"

#include "functions.h"

#include <interpose/mpi_library.h>

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Atomic(MPI_Comm) splitter_replaced, splitter_program;

static MPI_Comm program; /* valid where is_split */
static bool is_split, has_begun;
static int appnum;

/* --- what stands behind us ------------------------------------------------------------------------------------------- */

static bool find_mpi(nessie_library *mpi) {
  return nessie_find_mpi(NESSIE_MPI_SONAME, (const void *)&splitter_find, mpi);
}

static bool is_ours(const nessie_library *mpi) { return strcmp(mpi->soname, NESSIE_MPI_SONAME) == 0; }

static int absent(void) { return MPI_ERR_INTERN; }

static splitter_function function_at(void *address) {
  splitter_function function = NULL;
  memcpy(&function, &address, sizeof function);
  return function;
}

splitter_function splitter_find_named(const char *name) {
  nessie_library mpi;
  splitter_function found = find_mpi(&mpi) ? function_at(nessie_defined_in(&mpi, name)) : NULL;
  return found == NULL ? (splitter_function)absent : found;
}

static bool begins(int number) {
#ifdef SPLIT_HAS_Session_init
  if (number == kSession_init) return true;
#endif
  return number == kInit || number == kInit_thread;
}

/* Servers in the program's processes (libnessie_embedded.so) begin and end with MPI, between it and us. */
static splitter_function find_behind(int number) {
  nessie_library mpi;
  const bool may_be = (begins(number) || number == kAbort) && find_mpi(&mpi);
  return may_be ? function_at(nessie_tool_behind(&mpi, splitter_names[number])) : NULL;
}

splitter_function splitter_find(int number) {
  const splitter_function behind = find_behind(number);
  const splitter_function found = behind != NULL ? behind : splitter_find_named(splitter_names[number]);
  if (found != (splitter_function)absent) atomic_store_explicit(&splitter_natives[number], found, memory_order_relaxed);
  return found;
}

/* Another MPI gets all calls as they are, once it has begun. */
static void stand_aside(const nessie_library *mpi) {
  for (int i = 0; i < 2 * kWrapped; ++i) {
    void *its = nessie_defined_in(mpi, splitter_names[i / 2] + (i % 2 == 0));
    if (its != NULL && !begins(i / 2)) splitter_targets[i] = function_at(its);
  }
}

static void find_tools(const nessie_library *mpi) {
  for (int i = 0; i < kWrapped; ++i) {
    void *tool = nessie_tool_behind(mpi, splitter_names[i] + 1); /* MPI_X of PMPI_X */
    if (tool != NULL) splitter_targets[2 * i] = function_at(tool);
  }
}

__attribute__((destructor)) static void leave(void) { splitter_end_windows(); }

__attribute__((constructor)) static void look_around(void) {
  nessie_library mpi;
  if (!find_mpi(&mpi)) return;
  if (is_ours(&mpi))
    find_tools(&mpi);
  else
    stand_aside(&mpi);
}

/* --- handles ------------------------------------------------------------------------------------------------------------ */

/* Open MPI's are addresses of variables, which the dynamic linker may have moved into the program: it knows them by
 * their numbers in Fortran. */
#if defined(OPEN_MPI)
MPI_Comm splitter_world(void) { return native_Comm_f2c(0); }
MPI_Comm splitter_self(void) { return native_Comm_f2c(1); }
MPI_Comm splitter_null(void) { return native_Comm_f2c(2); }
MPI_Datatype splitter_byte(void) { return native_Type_f2c(1); }
MPI_Errhandler splitter_errors_return(void) { return native_Errhandler_f2c(2); }
#else
MPI_Comm splitter_world(void) { return MPI_COMM_WORLD; }
MPI_Comm splitter_self(void) { return MPI_COMM_SELF; }
MPI_Comm splitter_null(void) { return MPI_COMM_NULL; }
MPI_Datatype splitter_byte(void) { return MPI_BYTE; }
MPI_Errhandler splitter_errors_return(void) { return MPI_ERRORS_RETURN; }
#endif

bool splitter_is_on(void) { return is_split && atomic_load(&splitter_replaced) != atomic_load(&splitter_program); }

bool splitter_is_world(MPI_Comm comm) {
  return splitter_is_on() && (comm == atomic_load(&splitter_replaced) || comm == program);
}

MPI_Comm splitter_told(MPI_Comm comm) { return splitter_is_world(comm) ? atomic_load(&splitter_replaced) : comm; }

int *splitter_appnum(void) { return &appnum; }

void splitter_switch(bool on) {
  if (!is_split) return;
  atomic_store(&splitter_replaced, on ? splitter_world() : program);
}

/* --- the split ---------------------------------------------------------------------------------------------------------- */

void splitter_say(const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "nessie: CommSplitter: %s\n", text);
}

void splitter_give_up(const char *why) {
  const struct timespec moment = {.tv_nsec =
                                      500000000}; /* launchers drop what they have not read when a job is aborted */
  splitter_say("%s", why);
  splitter_end_windows();
  nanosleep(&moment, NULL);
  native_Abort(splitter_world(), 1);
  _exit(1);
}

/* MPI_Finalize need not wait for anybody, and Open MPI's does not for other nodes below srun. A program that serves the
 * job's others may end when it returns. */
static void await_all(void) {
  static const struct timespec moment = {.tv_nsec = 1000000};
  MPI_Request request;
  int done = 0;
  if (native_Ibarrier(splitter_world(), &request) != MPI_SUCCESS) return;
  while (native_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) nanosleep(&moment, NULL);
}

/* MPI gives the attributes of MPI_COMM_SELF up in the reverse order, so this is called after the program's. */
static int end(MPI_Comm self, int keyval, void *value, void *state) {
  (void)self, (void)keyval, (void)value, (void)state;
  splitter_switch(false);
  await_all();
  is_split = has_begun = false;
  return native_Comm_free(&program);
}

static int copy_nothing(MPI_Comm comm, int keyval, void *state, void *value, void *copy, int *flag) {
  (void)comm, (void)keyval, (void)state, (void)value, (void)copy;
  *flag = 0;
  return MPI_SUCCESS;
}

static void end_with_mpi(void) {
  int keyval = 0;
  native_Comm_create_keyval(copy_nothing, end, &keyval, NULL);
  native_Comm_set_attr(splitter_self(), keyval, &program);
  native_Comm_free_keyval(&keyval); /* it lives on in the attribute */
}

static void split(MPI_Comm world, int colour, int rank) {
  native_Comm_split(world, colour, rank, &program);
  native_Comm_set_name(program, "MPI_COMM_WORLD");
  end_with_mpi();
  is_split = true;
  atomic_store(&splitter_program, program);
  splitter_switch(true);
}

/* What each process needs of all: which have its key, and what is its program's lowest number. */
typedef struct {
  splitter_key key;
  int appnum;
  bool aborts_alone; /* MPI_Abort is to end one program only: if all want it so */
} Card;

static bool same(const splitter_key *a, const splitter_key *b) {
  return a->parts[0] == b->parts[0] && a->parts[1] == b->parts[1];
}

/* The lowest rank of this program is its colour. */
static void split_by(const Card *cards, MPI_Comm world, int rank, int size) {
  int colour = rank, lowest = cards[rank].appnum;
  bool others = false, aborts_alone = true;
  for (int i = size - 1; i >= 0; --i) {
    aborts_alone = aborts_alone && cards[i].aborts_alone;
    if (!same(&cards[i].key, &cards[rank].key)) {
      others = true;
      continue;
    }
    colour = i;
    if (cards[i].appnum < lowest) lowest = cards[i].appnum;
  }
  appnum = cards[rank].appnum - lowest;
  if (!others) return;
  split(world, colour, rank);
  if (aborts_alone) splitter_prepare_abort(world, program, colour);
}

static int number_of_program(MPI_Comm world) {
  int *number = NULL, flag = 0;
  native_Comm_get_attr(world, MPI_APPNUM, &number, &flag);  // NOLINT(bugprone-multi-level-implicit-pointer-conversion)
  return flag != 0 ? *number : 0;
}

/* How long programs without this library are waited for. */
static double patience_s(void) {
  const char *setting = getenv("NESSIE_COMMSPLITTER_TIMEOUT");
  char *unit = NULL;
  const double seconds = setting == NULL ? 60 : strtod(setting, &unit);
  if (setting != NULL && (unit == setting || !(seconds > 0) || (*unit != '\0' && strcmp(unit, "s") != 0)))
    splitter_give_up("NESSIE_COMMSPLITTER_TIMEOUT is no time, such as 60s");
  return seconds;
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A program without this library never takes part. */
static void gather(const Card *mine, Card *cards, MPI_Comm world) {
  const double end = now_s() + patience_s();
  MPI_Request request;
  int done = 0;
  native_Iallgather(mine, sizeof *mine, splitter_byte(), cards, sizeof *mine, splitter_byte(), world, &request);
  while (native_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
    if (now_s() > end)
      splitter_give_up(
          "another program of this job does not answer: preload this library in all of them "
          "(Open MPI's mpiexec needs -x LD_PRELOAD in each part of its command)");
    sched_yield();
  }
}

static bool aborts_alone(void) {
  const char *setting = getenv("NESSIE_COMMSPLITTER_ABORT");
  if (setting == NULL || *setting == '\0' || strcmp(setting, "job") == 0) return false;
  if (strcmp(setting, "program") != 0) splitter_give_up("NESSIE_COMMSPLITTER_ABORT is neither job nor program");
  return true;
}

static void exchange(MPI_Comm world, int rank, int size) {
  Card mine = {.appnum = number_of_program(world), .aborts_alone = aborts_alone()};
  const char *setting = getenv("NESSIE_COMMSPLITTER"),
             *wrong = splitter_read_key(setting, rank, mine.appnum, &mine.key);
  char why[256];
  snprintf(why, sizeof why, "NESSIE_COMMSPLITTER=%s %s", setting == NULL ? "" : setting, wrong == NULL ? "" : wrong);
  if (wrong != NULL) splitter_give_up(why);
  Card *cards = calloc((size_t)size, sizeof *cards);
  if (cards == NULL) return splitter_give_up("no memory for one card of each process");
  gather(&mine, cards, world);
  split_by(cards, world, rank, size);
  free(cards);
}

static bool is_first(void) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  return rank == NULL || strcmp(rank, "0") == 0;
}

static void decline(const nessie_library *mpi) {
  stand_aside(mpi);
  if (is_first())
    splitter_say(
        "this program's MPI is %s, and this library was made for %s: it shares MPI_COMM_WORLD with the job's other "
        "programs",
        mpi->soname, NESSIE_MPI_SONAME);
}

/* Processes that a program has spawned have a world of their own already. */
static void begin(void) {
  nessie_library mpi;
  MPI_Comm parent, world;
  int rank = 0, size = 1;
  if (!find_mpi(&mpi)) return;
  if (!is_ours(&mpi)) return decline(&mpi);
  world = splitter_world();
  native_Comm_get_parent(&parent);
  native_Comm_size(world, &size);
  native_Comm_rank(world, &rank);
  if (parent == splitter_null() && size > 1) exchange(world, rank, size);
}

void splitter_begin(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  if (!has_begun) begin();
  has_begun = true;
  pthread_mutex_unlock(&mutex);
}
