/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI's own functions with which its Fortran bindings go past MPI_X and PMPI_X: attributes and error handlers,
 * whose functions have arguments of other types in Fortran. A communicator's number in Fortran is told as it is
 * natively. */
#include "callbacks.h"
#include "functions.h"

/* Looks it up once. */
static splitter_function internal(_Atomic(splitter_function) *known, const char *name) {
  splitter_function function = atomic_load_explicit(known, memory_order_relaxed);
  if (function == NULL) atomic_store_explicit(known, function = splitter_find_named(name), memory_order_relaxed);
  return function;
}

#if defined(OPEN_MPI)

enum { kAttributesOfComm = 1, kHandlerOfComm = 1, kInFortran = 2 }; /* Open MPI's enumerations */

static MPI_Fint told(const MPI_Fint *comm) { return native_Comm_c2f(splitter_told(native_Comm_f2c(*comm))); }

/* --- attributes: MPI-2's with integers as large as addresses, MPI-1's with Fortran's ------------------------------------ */

/* What a key was made with. MPI-1's state has no room for an address, so it is a place in a table. */
typedef struct {
  splitter_function copy, remove;
  MPI_Aint state;
} Key;

enum { kKeys = 4096 };
static Key keys[kKeys];
static _Atomic int keys_used;

static const Key *add_key(splitter_function copy, splitter_function remove, MPI_Aint state, MPI_Fint *number) {
  *number = atomic_fetch_add(&keys_used, 1);
  if (*number >= kKeys) return NULL;
  keys[*number] = (Key){copy, remove, state};
  return &keys[*number];
}

#define CALLBACKS(name, Integer)                                                                                    \
  static void copy_##name(MPI_Fint *comm, MPI_Fint *key, Integer *number, Integer *value, Integer *copy, int *flag, \
                          MPI_Fint *code) {                                                                         \
    typedef void (*Copy)(MPI_Fint *, MPI_Fint *, Integer *, Integer *, Integer *, int *, MPI_Fint *);               \
    MPI_Fint shown = told(comm);                                                                                    \
    Integer state = (Integer)keys[*number].state;                                                                   \
    ((Copy)keys[*number].copy)(&shown, key, &state, value, copy, flag, code);                                       \
  }                                                                                                                 \
  static void remove_##name(MPI_Fint *comm, MPI_Fint *key, Integer *value, Integer *number, MPI_Fint *code) {       \
    typedef void (*Remove)(MPI_Fint *, MPI_Fint *, Integer *, Integer *, MPI_Fint *);                               \
    MPI_Fint shown = told(comm);                                                                                    \
    Integer state = (Integer)keys[*number].state;                                                                   \
    ((Remove)keys[*number].remove)(&shown, key, value, &state, code);                                               \
  }                                                                                                                 \
  SPLITTER_EXPORT int ompi_attr_create_keyval_##name(int type, splitter_function copy, splitter_function remove,    \
                                                     int *key, Integer state, int flags, void *bindings) {          \
    typedef int (*Create)(int, splitter_function, splitter_function, int *, Integer, int, void *);                  \
    static _Atomic(splitter_function) known;                                                                        \
    Create create = (Create)internal(&known, "ompi_attr_create_keyval_" #name);                                     \
    MPI_Fint number = 0;                                                                                            \
    if (type != kAttributesOfComm || !splitter_is_on())                                                             \
      return create(type, copy, remove, key, state, flags, bindings);                                               \
    if (add_key(copy, remove, state, &number) == NULL) return MPI_ERR_NO_MEM;                                       \
    return create(type, (splitter_function)copy_##name, (splitter_function)remove_##name, key, number, flags,       \
                  bindings);                                                                                        \
  }                                                                                                                 \
  SPLITTER_EXPORT int ompi_attr_get_##name(void *attributes, int key, Integer *value, bool *flag) {                 \
    typedef int (*Get)(void *, int, Integer *, bool *);                                                             \
    static _Atomic(splitter_function) known;                                                                        \
    const int code = ((Get)internal(&known, "ompi_attr_get_" #name))(attributes, key, value, flag);                 \
    const int *shown = code == MPI_SUCCESS && !*flag ? predefined_attribute(key) : NULL;                            \
    if (shown != NULL) *value = *shown, *flag = true;                                                               \
    return code;                                                                                                    \
  }

CALLBACKS(aint, MPI_Aint)
CALLBACKS(fint, MPI_Fint)

/* --- error handlers ------------------------------------------------------------------------------------------------------ */

static void handle_error(MPI_Fint *comm, MPI_Fint *code, ...) {
  MPI_Fint shown = told(comm);
  splitter_function function = errhandler_of(native_Comm_f2c(*comm));
  if (function != NULL) ((void (*)(MPI_Fint *, MPI_Fint *, ...))function)(&shown, code);
}

SPLITTER_EXPORT MPI_Errhandler ompi_errhandler_create(int type, splitter_function function, int language) {
  typedef MPI_Errhandler (*Create)(int, splitter_function, int);
  static _Atomic(splitter_function) known;
  Create create = (Create)internal(&known, "ompi_errhandler_create");
  if (type != kHandlerOfComm || language != kInFortran || !splitter_is_on()) return create(type, function, language);
  MPI_Errhandler handle = create(type, (splitter_function)handle_error, language);
  if (handle == NULL || note_errhandler(handle, function)) return handle;
  native_Errhandler_free(&handle);
  return native_Errhandler_f2c(0); /* MPI_ERRHANDLER_NULL, which its callers make an error of */
}

#else

/* --- MPICH: functions that go between MPI and a Fortran program's, and know both -------------------------------------------- */

enum { kAsAddress = 1, kAsFortran = 3 }; /* MPICH's kinds of attributes; its own have other keys in Fortran */
enum { kAppnumInFortran = MPI_APPNUM + 1 };

SPLITTER_EXPORT void MPII_Keyval_set_proxy(int keyval, CopyProxy copy, RemoveProxy remove) {
  typedef void (*Set)(int, CopyProxy, RemoveProxy);
  static _Atomic(splitter_function) known;
  const bool ours = set_proxies(keyval, copy, remove);
  ((Set)internal(&known, "MPII_Keyval_set_proxy"))(keyval, ours ? copy_by_proxy : copy,
                                                   ours ? remove_by_proxy : remove);
}

SPLITTER_EXPORT int MPII_Comm_set_attr(MPI_Comm comm, int keyval, void *value, int kind) {
  typedef int (*Set)(MPI_Comm, int, void *, int);
  static _Atomic(splitter_function) known;
  return ((Set)internal(&known, "MPII_Comm_set_attr"))(splitter_own(comm), keyval, value, kind);
}

/* The number of the program is told as the kind of integer that is asked for: an address's, or Fortran's. */
SPLITTER_EXPORT int MPII_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag, int kind) {
  typedef int (*Get)(MPI_Comm, int, void *, int *, int);
  static _Atomic(splitter_function) known;
  const int code = ((Get)internal(&known, "MPII_Comm_get_attr"))(splitter_own(comm), keyval, value, flag, kind);
  if (code != MPI_SUCCESS || keyval != kAppnumInFortran || !*flag || !splitter_is_on()) return code;
  if (kind == kAsAddress)
    *(MPI_Aint *)value = *splitter_appnum();
  else if (kind == kAsFortran)
    *(MPI_Fint *)value = *splitter_appnum();
  return code;
}

#endif
