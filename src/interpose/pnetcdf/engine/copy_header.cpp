// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/copy_header.hpp>

#include <pnetcdf.h>

#include <array>
#include <cstddef>
#include <vector>

namespace interpose {

namespace {

int copy_attributes(int from, int from_variable, int to, int to_variable) {
  int attributes = 0;
  int error = ncmpi_inq_varnatts(from, from_variable, &attributes);
  for (int a = 0; error == NC_NOERR && a < attributes; ++a) {
    std::array<char, NC_MAX_NAME + 1> name{};
    error = ncmpi_inq_attname(from, from_variable, a, name.data());
    if (error == NC_NOERR) error = ncmpi_copy_att(from, from_variable, name.data(), to, to_variable);
  }
  return error;
}

int copy_dimensions(int from, int to) {
  int dimensions = 0, unlimited = -1, copied = 0;
  int error = ncmpi_inq_ndims(from, &dimensions);
  if (error == NC_NOERR) error = ncmpi_inq_unlimdim(from, &unlimited);
  for (int d = 0; error == NC_NOERR && d < dimensions; ++d) {
    std::array<char, NC_MAX_NAME + 1> name{};
    MPI_Offset length = 0;
    error = ncmpi_inq_dim(from, d, name.data(), &length);
    if (error == NC_NOERR) error = ncmpi_def_dim(to, name.data(), d == unlimited ? NC_UNLIMITED : length, &copied);
  }
  return error;
}

int copy_variable(int from, int varid, int to) {
  std::array<char, NC_MAX_NAME + 1> name{};
  nc_type type = NC_NAT;
  int dimensions = 0, copied = 0;
  if (int error = ncmpi_inq_varndims(from, varid, &dimensions); error != NC_NOERR) return error;
  std::vector<int> dimids(static_cast<std::size_t>(dimensions) + 1);
  int error = ncmpi_inq_var(from, varid, name.data(), &type, &dimensions, dimids.data(), nullptr);
  if (error == NC_NOERR) error = ncmpi_def_var(to, name.data(), type, dimensions, dimids.data(), &copied);
  return error == NC_NOERR ? copy_attributes(from, varid, to, copied) : error;
}

}  // namespace

int copy_header(int from, int to) {
  int variables = 0;
  int error = copy_dimensions(from, to);
  if (error == NC_NOERR) error = copy_attributes(from, NC_GLOBAL, to, NC_GLOBAL);
  if (error == NC_NOERR) error = ncmpi_inq_nvars(from, &variables);
  for (int v = 0; error == NC_NOERR && v < variables; ++v) error = copy_variable(from, v, to);
  return error;
}

}  // namespace interpose
