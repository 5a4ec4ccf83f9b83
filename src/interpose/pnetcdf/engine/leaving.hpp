// SPDX-License-Identifier: BSD-3-Clause
// Mode auto: files that native PnetCDF reads or writes as fast.
//
// Design notes. What processes read in large runs of a file each, native PnetCDF reads right into their memory, all
// processes at once; the servers would read it first, and pass it on. What lies scattered the servers read once for all
// processes. What processes write in large runs to a file system in memory takes one copy through ROMIO, and two by way
// of a server, which has no core of its own for that if the program takes all. What such a file is like shows the first
// collective call that reads or writes it: there all ranks decide together.
//
// A file that native PnetCDF made is not quite, to itself, the same as one that it opened (it counts record variables,
// and remembers alignments). So a new file is not opened, but made again, as long as nobody has written to it.
#pragma once

#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/file.hpp>

#include <string>

namespace interpose {

/// Whether a file that was opened may be left to native PnetCDF. The same on all ranks.
bool may_be_left(File &file);
/// Whether a file that is to be made may be left to native PnetCDF, as far as this process can tell.
bool may_be_left(const std::string &path);

/// At the first collective read or write of such a file; `error`: what is wrong with this rank's arguments.
/// kLeftNative; or NC_NOERR: it stays staged; or the error with which it could not be left.
int consider_leaving(File &file, const Access &access, int error);

}  // namespace interpose
