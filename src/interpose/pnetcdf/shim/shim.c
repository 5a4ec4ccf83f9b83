/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. This library may be preloaded into anything: shells, launchers, interpreters, programs that never call
 * PnetCDF. So it needs libc only. At its start a program of a run maps the servers' boards, joins a barrier of the
 * kernel's, and looks up what starts other programs; whatever has to do with PnetCDF waits for the first call of a
 * ncmpi_ function, because an extension of an interpreter loads libpnetcdf long after this library. */
#define _GNU_SOURCE
#include "shim.h"

#include "boards.h"
#include "functions.h"
#include "library.h"
#include "notes.h"
#include "ranks.h"
#include "signals.h"

#include <base/say.h>
#include <interpose/beside.h>
#include <interpose/embedded/embedded_abi.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NESSIE_NAME(name) #name,
#define NESSIE_MARKED_NAME(name) NESSIE_MARK #name,
static const char *const function_names[] = {NESSIE_PNETCDF_FUNCTIONS(NESSIE_NAME)};
static const char *const marked_names[] = {NESSIE_PNETCDF_FUNCTIONS(NESSIE_MARKED_NAME)};
#undef NESSIE_NAME
#undef NESSIE_MARKED_NAME
#define NESSIE_NUMBER(name) number_of_##name,
enum { NESSIE_PNETCDF_FUNCTIONS(NESSIE_NUMBER) };
#undef NESSIE_NUMBER

extern nessie_function const nessie_shim_entries[];
extern char const nessie_shim_names_file[];

static nessie_function native_functions[NESSIE_PNETCDF_FUNCTION_COUNT]; /* NULL: PnetCDF has none of the name */
static nessie_function next_functions[NESSIE_PNETCDF_FUNCTION_COUNT]; /* of a tool behind us, or the native one; NULL */
static char why_not_native[512] = "not found";
static const nessie_engine *_Atomic engine; /* NULL: transparent; the first file may make it so */
static pid_t engine_pid;
static pthread_once_t first_call = PTHREAD_ONCE_INIT, first_file = PTHREAD_ONCE_INIT;
static char *servers_at_start; /* NULL: transparent */
static char *credential_at_start, *job_at_start;
static int speech = -1; /* see nessie_shim_speech() */
static int ended;       /* whether this library's destructor has run */
static __thread int inside, passing_tool;
enum { kNothing, kEngine, kTool }; /* what was entered */

__attribute__((constructor)) static void look_for_stderr(void) {
  const int error = errno;
  if (fcntl(STDERR_FILENO, F_GETFD) != -1) speech = STDERR_FILENO;
  errno = error;
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length > 0) nessie_say(speech, text, strlen(text));
}

/* Says it on one process of a job only, as far as the launcher tells which one this is. */
static void notice(const char *text, const char *detail) {
  static const char *const rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; ++i) {
    const char *rank = getenv(rank_variables[i]);
    if (rank != NULL && strcmp(rank, "0") != 0) return;
  }
  say("nessie: %s: %s\n", text, detail);
}

static nessie_function as_function(void *symbol) {
  nessie_function function;
  memcpy(&function, &symbol, sizeof function);
  return function;
}

static nessie_function native(int index) {
  if (native_functions[index] == NULL) {
    say("nessie: native PnetCDF has no %s: %s\n", function_names[index], why_not_native);
    exit(127); /* what the dynamic linker does about a missing symbol */
  }
  return native_functions[index];
}

/* Who comes behind us: a preloaded tool, or the native function. */
static nessie_function next(int index) { return next_functions[index] != NULL ? next_functions[index] : native(index); }

/* All at once: dlsym() makes the program's dlerror() forget what it was about to say. */
static void find_functions(void) {
  for (int i = 0; i < NESSIE_PNETCDF_FUNCTION_COUNT; ++i) {
    native_functions[i] = as_function(nessie_native_function(function_names[i]));
    next_functions[i] = as_function(nessie_real_dlsym(RTLD_NEXT, function_names[i]));
  }
}

/* Opens the engine. What it calls it finds now, or cannot be used (it was linked so); to look up all that the libraries
 * behind it may ever call would take each process several milliseconds. */
static void *open_engine_library(void) {
  char path[4096];
  if (!nessie_path_beside(function_names, NESSIE_PNETCDF_ENGINE_LIBRARY, path, sizeof path)) return NULL;
  return dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

static char *copy_of_variable(const char *name) {
  const char *value = getenv(name);
  return value == NULL || *value == '\0' ? NULL : strdup(value);
}

/* Some programs clear their environment, one process of a job earlier than another. */
__attribute__((constructor)) static void remember_servers(void) {
  const int error = errno;
  servers_at_start = copy_of_variable("NESSIE_SERVERS");
  credential_at_start = copy_of_variable("NESSIE_CREDENTIAL");
  job_at_start = copy_of_variable("NESSIE_STAGING_JOB");
  errno = error;
}

/* What the engine's messages need (base/fence.hpp), before main(): to join costs nothing while there is one thread, and
 * afterwards, as in a program that has initialised MPI, some 10 ms, because the kernel waits for all processors. */
__attribute__((constructor)) static void join_asymmetric_fences(void) {
  const int error = errno;
  if (getenv("NESSIE_SERVERS") != NULL) (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
  errno = error;
}

static void do_not_stage(const char *why) {
  notice("files are written by native PnetCDF, not staged", why);
  nessie_note((const char *[]){why}, 1);
}

static void finish_engine(void) {
  if (engine == NULL || getpid() != engine_pid) return;
  inside = 1;
  engine->finish();
  nessie_shim_leave(kEngine);
}

static void open_engine(void) {
  if (servers_at_start == NULL) return;
  const char *foreign = nessie_foreign_library();
  if (foreign != NULL) return do_not_stage(foreign);
  void *library = open_engine_library();
  if (library == NULL) {
    const char *reason = dlerror();
    return do_not_stage(reason != NULL ? reason : NESSIE_PNETCDF_ENGINE_LIBRARY " cannot be loaded");
  }
  static nessie_shim shim = {.native = native};
  shim.boards = nessie_seen_boards();
  shim.speech = speech;
  shim.servers = servers_at_start;
  shim.credential = credential_at_start;
  shim.job = job_at_start;
  void *symbol = nessie_real_dlsym(library, NESSIE_PNETCDF_ENGINE_SYMBOL);
  const nessie_engine *(*open)(int, const nessie_shim *) = NULL;
  if (symbol != NULL) memcpy(&open, &symbol, sizeof open);
  if (open != NULL) engine = open(NESSIE_PNETCDF_FUNCTION_COUNT, &shim);
  engine_pid = getpid();
  if (engine == NULL) do_not_stage(NESSIE_PNETCDF_ENGINE_LIBRARY " is of another version");
  if (ended) finish_engine();
}

/* Of files that only some of a job's processes stage no collective call would ever end. */
static void look_who_is_missing(void) {
  static char why[200];
  const int missing = nessie_missing_rank();
  if (engine == NULL || missing < 0) return;
  engine = NULL;
  (void)snprintf(why, sizeof why,
                 "process %d of the job on this node runs without Nessie's library in front of its PnetCDF", missing);
  do_not_stage(why);
}

static bool begins_file(int index) { return index == number_of_ncmpi_create || index == number_of_ncmpi_open; }

static void begin(void) {
  const char *reason = nessie_load_native();
  if (reason != NULL) (void)snprintf(why_not_native, sizeof why_not_native, "%s", reason);
  find_functions();
  open_engine();
}

/* A program that is built with AddressSanitizer ends at once where a preloaded library comes before the sanitizer's,
 * unless it is told that this is meant. The sanitizer asks this function, or one of the same name that the program has,
 * and then ASAN_OPTIONS. */
const char *__asan_default_options(void);
NESSIE_EXPORT const char *__asan_default_options(void) { return "verify_asan_link_order=0"; }

/* After the program's exit handlers, and the destructors of its static objects, which may still use files. So may those
 * of the libraries that it is linked to, which come later: the engine goes on to serve them. */
__attribute__((destructor)) static void finish(void) {
  ended = 1;
  finish_engine();
}

/* --- servers in the program's own processes (interpose/embedded) --------------------------------------------------------- */

NESSIE_EXPORT void nessie_pnetcdf_serve(void) { inside = 1; }

NESSIE_EXPORT void nessie_pnetcdf_finish(void) { finish_engine(); }

static void note_once(atomic_flag *noted, const char *text) {
  if (!atomic_flag_test_and_set(noted)) nessie_note(&text, 1);
}

static void note_way_past(void) {
  static atomic_flag noted = ATOMIC_FLAG_INIT;
  note_once(&noted, "functions of PnetCDF were reached past Nessie, in the library itself");
}

void nessie_shim_note_other(void) {
  static atomic_flag noted = ATOMIC_FLAG_INIT;
  note_once(&noted, "the program has another PnetCDF as well, whose files are native");
}

/* Whether a plug-in calls that brings a PnetCDF of its own, which nobody else would reach. */
static int is_of_other(int index, const void *caller) {
  return next_functions[index] == NULL && !nessie_is_native(caller) && nessie_has_other(caller);
}

static nessie_function function_of_other(int index, const void *caller) {
  nessie_function function = as_function(nessie_other_function(caller, function_names[index]));
  if (function == NULL) return native(index);
  nessie_shim_note_other();
  return function;
}

/* A callback of MPI's, a signal handler that could not wait (signals.c), or the program after a jump out of one: what
 * is named is half changed, and a native function would take the mirror for the file. */
static nessie_function refuse(void) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  static const char text[] =
      "nessie: PnetCDF was called while a call of it was under way, in a callback or a signal handler, or after a jump "
      "out "
      "of one: it answers NC_EFILE\n";
  if (!atomic_flag_test_and_set(&said)) nessie_say(speech, text, sizeof text - 1);
  return NULL;
}

static nessie_function answer_within(int index) {
  const nessie_engine *const staged = engine;
  const int is_others = staged != NULL && !staged->is_native_at_work() && nessie_shim_names_file[index];
  return is_others ? refuse() : native(index);
}

nessie_function nessie_shim_enter(int index, int *entered, const void *caller) {
  pthread_once(&first_call, begin);
  if (begins_file(index)) pthread_once(&first_file, look_who_is_missing);
  if (inside) return answer_within(index);
  if (is_of_other(index, caller)) return function_of_other(index, caller);
  const nessie_engine *const staged = engine;
  if (staged != NULL && nessie_is_native(caller) && nessie_is_native_inside(caller)) {
    note_way_past();
    return native(index);
  }
  if (!passing_tool && next(index) != native(index)) {
    passing_tool = 1;
    *entered = kTool;
    return next(index);
  }
  if (staged == NULL) return native(index);
  inside = 1;
  *entered = kEngine;
  return staged->functions[index];
}

/* A signal that comes after `inside` was cleared is handled at once, one that came before is counted by then. */
void nessie_shim_leave(int entered) {
  if (entered == kTool) passing_tool = 0;
  if (entered != kEngine) return;
  inside = 0;
  atomic_signal_fence(memory_order_seq_cst);
  if (nessie_held_signals > 0) nessie_release_signals();
}

int nessie_shim_is_inside(void) { return inside; }

int nessie_shim_speech(void) { return speech; }

int nessie_shim_index(const char *name) {
  for (int i = 0; i < NESSIE_PNETCDF_FUNCTION_COUNT; ++i)
    if (strcmp(function_names[i], name) == 0) return i;
  return -1;
}

void *nessie_shim_entry(int index) {
  void *entry;
  memcpy(&entry, &nessie_shim_entries[index], sizeof entry);
  return entry;
}

const char *nessie_shim_marked_name(int index) { return marked_names[index]; }
