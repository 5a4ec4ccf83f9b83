// SPDX-License-Identifier: BSD-3-Clause
// The arguments of puts and gets, checked in native PnetCDF's order, with its codes.
#pragma once

#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// Permission, mode, variable id and type. `element_type` is MPI_DATATYPE_NULL in flexible calls.
int check_call(File &file, Direction direction, Mode mode, int varid, MPI_Datatype element_type);

/// start, count and stride of one var1, vara, vars or varm access to a variable with dimensions.
int check_indices(File &file, const Variable &variable, bool is_read, Shape shape, const MPI_Offset *start,
                  const MPI_Offset *count, const MPI_Offset *stride);

/// Everything in `access` but its memory and, for varn, its indices.
int check(File &file, const Access &access);
/// The indices of a varn access.
int check_list(File &file, const Access &access);

/// Whether a call of which this rank has checked the arguments, with result `error`, returns now, without taking part.
/// A collective one in safe mode returns on all ranks, or on none, with the least of their errors, which `error`
/// becomes.
bool is_over(File &file, bool is_collective, int &error);

}  // namespace interpose
