// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/functions.hpp>

#include <base/log.hpp>

#include "functions.h"

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

}  // namespace interpose

extern "C" __attribute__((visibility("default"))) const nessie_function *nessie_pnetcdf_engine(int count) {
  return count == NESSIE_PNETCDF_FUNCTION_COUNT ? interpose::kEngineFunctions : nullptr;
}
