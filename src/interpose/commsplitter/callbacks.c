/* SPDX-License-Identifier: BSD-3-Clause */
#include "callbacks.h"

#include "functions.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of both lists */

/* --- attributes ----------------------------------------------------------------------------------------------------------- */

struct Attribute {
  MPI_Comm_copy_attr_function *copy;
  MPI_Comm_delete_attr_function *remove;
  void *state;
  int keyval;
  CopyProxy copy_proxy;
  RemoveProxy remove_proxy;
  Attribute *next;
};

static Attribute *attributes;

static int copy_attribute(MPI_Comm comm, int keyval, void *state, void *value, void *copy, int *flag) {
  const Attribute *attribute = state;
  return attribute->copy(splitter_told(comm), keyval, attribute->state, value, copy, flag);
}

static int remove_attribute(MPI_Comm comm, int keyval, void *value, void *state) {
  const Attribute *attribute = state;
  return attribute->remove(splitter_told(comm), keyval, value, attribute->state);
}

/* Some MPIs know their own functions, which do nothing, by NULL. */
int create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *remove, int *keyval, void *state) {
  Attribute *attribute = malloc(sizeof *attribute);
  if (attribute == NULL) return MPI_ERR_NO_MEM;
  *attribute = (Attribute){.copy = copy, .remove = remove, .state = state};
  const int code = native_Comm_create_keyval(copy == NULL ? NULL : copy_attribute,
                                             remove == NULL ? NULL : remove_attribute, keyval, attribute);
  if (code != MPI_SUCCESS) {
    free(attribute);
    return code;
  }
  pthread_mutex_lock(&mutex);
  attribute->keyval = *keyval;
  attribute->next = attributes;
  attributes = attribute;
  pthread_mutex_unlock(&mutex);
  return code;
}

bool set_proxies(int keyval, CopyProxy copy, RemoveProxy remove) {
  pthread_mutex_lock(&mutex);
  Attribute *found = attributes;
  while (found != NULL && found->keyval != keyval) found = found->next;
  if (found != NULL) found->copy_proxy = copy, found->remove_proxy = remove;
  pthread_mutex_unlock(&mutex);
  return found != NULL;
}

/* Keys may have been freed. */
void remove_attributes(MPI_Comm comm) {
  native_Comm_set_errhandler(comm, splitter_errors_return());
  for (const Attribute *attribute = attributes; attribute != NULL; attribute = attribute->next) {
    void *value = NULL;
    int set = 0;
    if (native_Comm_get_attr(comm, attribute->keyval, (void *)&value, &set) == MPI_SUCCESS && set)
      native_Comm_delete_attr(comm, attribute->keyval);
  }
}

#if !defined(OPEN_MPI)

int copy_by_proxy(splitter_function function, int comm, int keyval, void *state, int kind, void *value, void **copy,
                  int *flag) {
  const Attribute *attribute = state;
  (void)function;
  return attribute->copy_proxy((splitter_function)attribute->copy, splitter_told(comm), keyval, attribute->state, kind,
                               value, copy, flag);
}

int remove_by_proxy(splitter_function function, int comm, int keyval, int kind, void *value, void *state) {
  const Attribute *attribute = state;
  (void)function;
  return attribute->remove_proxy((splitter_function)attribute->remove, splitter_told(comm), keyval, kind, value,
                                 attribute->state);
}

#endif

int *predefined_attribute(int keyval) {
  static struct {
    int keyval, value;
  } known[] = {{MPI_TAG_UB, 0},        {MPI_HOST, 0},         {MPI_IO, 0},    {MPI_WTIME_IS_GLOBAL, 0},
               {MPI_UNIVERSE_SIZE, 0}, {MPI_LASTUSEDCODE, 0}, {MPI_APPNUM, 0}};
  int *number = NULL, flag = 0;
  if (!splitter_is_on()) return NULL;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (known[i].keyval != keyval) continue;
    native_Comm_get_attr(splitter_world(), keyval, (void *)&number, &flag);
    if (flag) known[i].value = keyval == MPI_APPNUM ? *splitter_appnum() : *number;
    return flag ? &known[i].value : NULL;
  }
  return NULL;
}

/* --- error handlers --------------------------------------------------------------------------------------------------------- */

/* MPI tells an error handler's function the communicator only; whose function it is, is found by the communicator's
 * handler. Of a handle that MPI gives again, the last one counts. */
typedef struct Handler {
  MPI_Errhandler handle;
  splitter_function function;
  struct Handler *next;
} Handler;

static Handler *handlers;

static splitter_function function_of(MPI_Errhandler handle) {
  splitter_function function = NULL;
  pthread_mutex_lock(&mutex);
  for (const Handler *handler = handlers; handler != NULL && function == NULL; handler = handler->next)
    if (handler->handle == handle) function = handler->function;
  pthread_mutex_unlock(&mutex);
  return function;
}

splitter_function errhandler_of(MPI_Comm comm) {
  MPI_Errhandler handle;
  if (native_Comm_get_errhandler(comm, &handle) != MPI_SUCCESS) return NULL;
  const splitter_function function = function_of(handle);
  native_Errhandler_free(&handle);
  return function;
}

bool note_errhandler(MPI_Errhandler handle, splitter_function function) {
  Handler *handler = malloc(sizeof *handler);
  if (handler == NULL) return false;
  pthread_mutex_lock(&mutex);
  *handler = (Handler){handle, function, handlers};
  handlers = handler;
  pthread_mutex_unlock(&mutex);
  return true;
}

/* What MPI gives behind the code is its own, and goes on as it is. */
static void handle_error(MPI_Comm *comm, int *code, ...) {
  MPI_Comm_errhandler_function *function = (MPI_Comm_errhandler_function *)errhandler_of(*comm);
  MPI_Comm told = splitter_told(*comm);
  va_list rest;
  va_start(rest, code);
  void *first = va_arg(rest, void *), *second = va_arg(rest, void *);
  va_end(rest);
  if (function != NULL) function(&told, code, first, second);
}

int create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *handle) {
  const int code = native_Comm_create_errhandler(handle_error, handle);
  if (code == MPI_SUCCESS && !note_errhandler(*handle, (splitter_function)function)) {
    native_Errhandler_free(handle);
    return MPI_ERR_NO_MEM;
  }
  return code;
}
