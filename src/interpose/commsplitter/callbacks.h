/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's functions that MPI calls with a communicator: they are told MPI_COMM_WORLD where it is that. */
#ifndef NESSIE_COMMSPLITTER_CALLBACKS_H
#define NESSIE_COMMSPLITTER_CALLBACKS_H

#include "splitter.h"

/* What a key for attributes was made with. It lives as long as the process: MPI does not tell when a key's last
 * attribute goes. */
typedef struct Attribute Attribute;

/* Makes a key. MPI_ERR_NO_MEM: there is no memory. */
int create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *remove, int *keyval, void *state);

/* Removes a communicator's attributes of all keys that the program made, the last key's first. */
void remove_attributes(MPI_Comm comm);

/* Makes an error handler that calls `function`. MPI_ERR_NO_MEM: there is no memory. */
int create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *handle);
/* Remembers that an error handler's function calls this one. False: there is no memory. */
bool note_errhandler(MPI_Errhandler handle, splitter_function function);
/* The function of the program's that a communicator's error handler has; NULL: none. */
splitter_function errhandler_of(MPI_Comm comm);

/* The value of one of MPI's own attributes, which are the job's communicator's; NULL: it is none, or MPI has none. */
int *predefined_attribute(int keyval);

/* MPICH calls a Fortran program's functions by such. */
typedef int (*CopyProxy)(splitter_function function, int comm, int keyval, void *state, int kind, void *value,
                         void **copy, int *flag);
typedef int (*RemoveProxy)(splitter_function function, int comm, int keyval, int kind, void *value, void *state);
/* False: the key is none that create_keyval() made. */
bool set_proxies(int keyval, CopyProxy copy, RemoveProxy remove);
int copy_by_proxy(splitter_function function, int comm, int keyval, void *state, int kind, void *value, void **copy,
                  int *flag);
int remove_by_proxy(splitter_function function, int comm, int keyval, int kind, void *value, void *state);

#endif
