/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's own MPI_COMM_WORLD, and what stands behind our entry points. */
#ifndef NESSIE_COMMSPLITTER_H
#define NESSIE_COMMSPLITTER_H

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define SPLITTER_EXPORT __attribute__((visibility("default")))

typedef void (*splitter_function)(void);

/* By number (functions.h): the name of PMPI_X, and the MPI's own; what our entry points MPI_X and PMPI_X jump to. */
extern char const *const splitter_names[];
extern _Atomic(splitter_function) splitter_natives[];
extern splitter_function splitter_targets[];

/* Looks the MPI's own function up; gives one that returns an error if there is none. */
splitter_function splitter_find(int number);
/* The same, by name, of functions that are the MPI's own business. */
splitter_function splitter_find_named(const char *name);

static inline splitter_function splitter_native(int number) {
  splitter_function known = atomic_load_explicit(&splitter_natives[number], memory_order_relaxed);
  return __builtin_expect(known != NULL, 1) ? known : splitter_find(number);
}

/* What is replaced: the job's MPI_COMM_WORLD. The same as `program` while nothing is. */
extern _Atomic(MPI_Comm) splitter_replaced;
/* The communicator of this program's processes. */
extern _Atomic(MPI_Comm) splitter_program;

/* What the MPI is to get for what the program gave. */
static inline MPI_Comm splitter_own(MPI_Comm comm) {
  if (__builtin_expect(comm != atomic_load_explicit(&splitter_replaced, memory_order_acquire), 1)) return comm;
  return atomic_load_explicit(&splitter_program, memory_order_relaxed);
}

/* Whether this process is of one program among several, and the switch is on. */
bool splitter_is_on(void);
/* Whether it is MPI_COMM_WORLD, under either handle; false while nothing is replaced. */
bool splitter_is_world(MPI_Comm comm);
/* What the program is to see for what the MPI gives. */
MPI_Comm splitter_told(MPI_Comm comm);
/* The real MPI_COMM_WORLD, MPI_COMM_SELF and MPI_COMM_NULL of the MPI that is loaded. */
MPI_Comm splitter_world(void);
MPI_Comm splitter_self(void);
MPI_Comm splitter_null(void);

/* The rest of MPI_Init, and of MPI_Session_init: splits, unless it has already. */
void splitter_begin(void);
void splitter_switch(bool on);
/* This program's MPI_APPNUM, as it would be in a job of its own. */
int *splitter_appnum(void);

MPI_Datatype splitter_byte(void);
MPI_Errhandler splitter_errors_return(void);
__attribute__((format(printf, 1, 2))) void splitter_say(const char *format, ...);
/* Ends the job with a sentence: programs that run in each other's communicator would hang, or be wrong. */
void splitter_give_up(const char *why);

/* --- abort.c ---------------------------------------------------------------------------------------------------------- */

/* Called by all processes of the job if MPI_Abort is to end one program only. `number` is the program's. */
void splitter_prepare_abort(MPI_Comm world, MPI_Comm program, int number);
/* Ends this program; returns if MPI_Abort is to end the job. */
void splitter_abort_program(int code);
/* In the place of MPI_Finalize, if it returns true: a program is missing, and MPI would wait for it. */
bool splitter_finish_beside_aborted(void);
bool splitter_has_left(void);

/* --- windows.c -------------------------------------------------------------------------------------------------------- */

/* Before and after MPI: keeps this program's windows from those of others. */
void splitter_part_windows(void);
void splitter_end_windows(void);

/* --- programs.c ------------------------------------------------------------------------------------------------------ */

/* Processes with the same are of one program. */
typedef struct {
  unsigned long long parts[2];
} splitter_key;

/* Returns NULL, or what is wrong with the setting. */
const char *splitter_read_key(const char *setting, int rank, int appnum, splitter_key *key);

#endif
