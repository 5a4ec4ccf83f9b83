/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that could show the job's communicator, or the program's own by its real handle. Each is called by our
 * MPI_X and PMPI_X. */
#include "callbacks.h"
#include "functions.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* --- the switch, and the end by force ----------------------------------------------------------------------------------- */

int split_Pcontrol(const int level) {
  splitter_switch(level != 0);
  return native_Pcontrol(level);
}

int split_Abort(MPI_Comm comm, int code) {
  splitter_abort_program(code);
  splitter_end_windows();
  return native_Abort(splitter_told(comm), code);
}

/* --- handles ------------------------------------------------------------------------------------------------------------ */

/* MPI_COMM_WORLD may not be freed; the error is the MPI's own. */
int split_Comm_free(MPI_Comm *comm) {
  MPI_Comm world = splitter_world();
  return native_Comm_free(comm != NULL && splitter_is_world(*comm) ? &world : comm);
}

int split_Comm_disconnect(MPI_Comm *comm) {
  MPI_Comm world = splitter_world();
  return native_Comm_disconnect(comm != NULL && splitter_is_world(*comm) ? &world : comm);
}

#ifdef SPLIT_HAS_Comm_c2f
int split_Comm_c2f(MPI_Comm comm) { return native_Comm_c2f(splitter_told(comm)); }

MPI_Comm split_Comm_f2c(int comm) { return splitter_told(native_Comm_f2c(comm)); }

/* Called by the MPI's Fortran functions, some of which go on without another call that we would see. */
MPI_Comm split_PMPI_Comm_f2c(int comm) { return splitter_own(native_Comm_f2c(comm)); }
#endif

static void *own_object(void *object, MPI_Comm *room) {
  if (object == NULL) return object;
  memcpy(room, object, sizeof *room);
  if (!splitter_is_world(*room)) return object;
  *room = splitter_own(*room);
  return room;
}

int split_T_cvar_handle_alloc(int index, void *object, MPI_T_cvar_handle *handle, int *count) {
  MPI_Comm room;
  return native_T_cvar_handle_alloc(index, own_object(object, &room), handle, count);
}

int split_T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void *object, MPI_T_pvar_handle *handle,
                              int *count) {
  MPI_Comm room;
  return native_T_pvar_handle_alloc(session, index, own_object(object, &room), handle, count);
}

#ifdef SPLIT_HAS_T_event_handle_alloc
int split_T_event_handle_alloc(int index, void *object, MPI_Info info, MPI_T_event_registration *event) {
  MPI_Comm room;
  return native_T_event_handle_alloc(index, own_object(object, &room), info, event);
}
#endif

/* --- sessions ------------------------------------------------------------------------------------------------------------ */

#ifdef SPLIT_HAS_Group_from_session_pset
static bool is_world_set(const char *name) { return name != NULL && strcasecmp(name, "mpi://WORLD") == 0; }

int split_Group_from_session_pset(MPI_Session session, const char *name, MPI_Group *group) {
  if (splitter_is_on() && is_world_set(name)) return native_Comm_group(splitter_own(splitter_world()), group);
  return native_Group_from_session_pset(session, name, group);
}

int split_Session_get_pset_info(MPI_Session session, const char *name, MPI_Info *info) {
  int code = native_Session_get_pset_info(session, name, info), size = 0;
  if (code != MPI_SUCCESS || !splitter_is_on() || !is_world_set(name)) return code;
  char text[16];
  native_Comm_size(splitter_own(splitter_world()), &size);
  snprintf(text, sizeof text, "%d", size);
  return native_Info_set(*info, "mpi_size", text);
}
#endif

/* --- attributes ----------------------------------------------------------------------------------------------------------- */

static void tell_predefined(int keyval, void *value, int *flag) {
  int *number = *flag && keyval != MPI_APPNUM ? NULL : predefined_attribute(keyval);
  if (number == NULL) return;
  memcpy(value, &number, sizeof number);
  *flag = 1;
}

int split_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag) {
  const int code = native_Comm_get_attr(splitter_own(comm), keyval, value, flag);
  if (code == MPI_SUCCESS) tell_predefined(keyval, value, flag);
  return code;
}

int split_Attr_get(MPI_Comm comm, int keyval, void *value, int *flag) {
  const int code = native_Attr_get(splitter_own(comm), keyval, value, flag);
  if (code == MPI_SUCCESS) tell_predefined(keyval, value, flag);
  return code;
}

int split_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *remove, int *keyval,
                             void *state) {
  return (splitter_is_on() ? create_keyval : native_Comm_create_keyval)(copy, remove, keyval, state);
}

int split_Keyval_create(MPI_Copy_function *copy, MPI_Delete_function *remove, int *keyval, void *state) {
  return split_Comm_create_keyval(copy, remove, keyval, state);
}

/* --- error handlers --------------------------------------------------------------------------------------------------------- */

int split_Comm_create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *handler) {
  return (splitter_is_on() ? create_errhandler : native_Comm_create_errhandler)(function, handler);
}

int split_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *handler) {
  return split_Comm_create_errhandler(function, handler);
}

int split_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  const int code = native_Comm_set_errhandler(splitter_own(comm), handler);
  if (code == MPI_SUCCESS && splitter_is_world(comm)) (void)native_Comm_set_errhandler(splitter_world(), handler);
  return code;
}

int split_Errhandler_set(MPI_Comm comm, MPI_Errhandler handler) { return split_Comm_set_errhandler(comm, handler); }
