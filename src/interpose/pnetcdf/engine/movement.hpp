// SPDX-License-Identifier: BSD-3-Clause
// Moves requests' external data to and from the staging servers.
#pragma once

#include <interpose/pnetcdf/engine/requests.hpp>

#include <span>

namespace interpose {

class File;

/// One batch. Returns when the requests' memory is free (write; the code may be that of an earlier one), or when the
/// data are in their external memory (read). Native PnetCDF's code, or NC_EWRITE / NC_EREAD when the servers cannot be
/// reached.
int write(File &file, std::span<const Request> requests);
int read(File &file, std::span<const Request> requests);

/// Converts and unpacks what was read into the program's memory. NC_NOERR or NC_ERANGE.
int deliver(Request &request);

}  // namespace interpose
