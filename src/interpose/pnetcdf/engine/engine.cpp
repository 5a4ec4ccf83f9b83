// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/file_table.hpp>
#include <interpose/pnetcdf/engine/functions.hpp>
#include <interpose/pnetcdf/engine/native_turn.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>

#include "functions.h"

#include <pthread.h>

#include <new>

namespace interpose {

int code_of_exception(const char *function) {
  try {
    throw;
  } catch (const std::bad_alloc &) { return NC_ENOMEM; } catch (const std::exception &exception) {
    nessie::log::error("{}: {}", function, exception.what());
    return NC_EFILE;
  }
}

namespace {

/// What fork() left in a child, where only the thread that called it goes on. Takes no lock and no memory.
void begin_in_child() {
  NativeTurn::begin_in_child();
  Session::begin_in_child();
  files().begin_in_child();
}

}  // namespace

}  // namespace interpose

extern "C" {

/// For native_entries.c.
nessie_function (*nessie_native)(int) = nullptr;
int nessie_is_native_at_work(void);

/// Nothing that is static in this library is ever destroyed: a program may use its files until its last instruction, in
/// destructors of its own static objects, which would come later. What is to be done at the end, finish() does.
int __cxa_atexit(void (*)(void *), void *, void *) { return 0; }

__attribute__((visibility("default"))) const nessie_engine *nessie_pnetcdf_engine(int count, const nessie_shim *shim) {
  static const nessie_engine engine{interpose::kEngineFunctions, [] { interpose::Session::get().finish(); },
                                    nessie_is_native_at_work};
  nessie_native = shim->native;
  pthread_atfork(nullptr, nullptr, interpose::begin_in_child);
  interpose::boards().set(shim->boards);
  nessie::log::set_descriptor(shim->speech);
  interpose::Session::get().found({shim->servers, shim->credential, shim->job});
  return count == NESSIE_PNETCDF_FUNCTION_COUNT ? &engine : nullptr;
}

}  // extern "C"
