// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/check.hpp>

namespace interpose {

int transfer(File &file, const FiletypeAccess &access) {
  if (int error = check_call(file, access.direction, access.mode, access.varid, MPI_DATATYPE_NULL)) return error;
  return NC_ENOTSUPPORT;
}

}  // namespace interpose
