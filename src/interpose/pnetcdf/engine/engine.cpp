// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/functions.hpp>

#include "functions.h"

extern "C" __attribute__((visibility("default"))) const nessie_function *nessie_pnetcdf_engine(int count) {
  return count == NESSIE_PNETCDF_FUNCTION_COUNT ? interpose::kEngineFunctions : nullptr;
}
