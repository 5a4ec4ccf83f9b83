// SPDX-License-Identifier: BSD-3-Clause
// Mode auto: files that are only read, which native PnetCDF may read as fast.
//
// Design notes. What processes read in large runs of a file each, native PnetCDF reads right into their memory, all
// processes at once; the servers would read it first, and pass it on. What lies scattered the servers read once for all
// processes. Which it is shows the first collective read: there all ranks decide together.
#pragma once

#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// Whether an open file may be left to native PnetCDF. The same on all ranks.
bool may_be_left(File &file);

/// At the first collective read of such a file; `error`: what is wrong with this rank's arguments. kLeftNative; or
/// NC_NOERR: it stays staged; or the error with which it could not be left.
int consider_leaving(File &file, const Access &access, int error);

}  // namespace interpose
