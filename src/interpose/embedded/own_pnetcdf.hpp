// SPDX-License-Identifier: BSD-3-Clause
// The PnetCDF and the MPI-IO that servers in a program's process call: copies of their own, which share nothing with
// the program's. PnetCDF is not made for threads. Of Open MPI's two MPI-IO layers, ompio does not tell that a disk is
// full, and ROMIO has a lock that a program's collective call holds as long as it waits for other processes, which may
// be waiting for the server; so it is a ROMIO without that lock.
#pragma once

#include <nessie/result.hpp>

namespace embedded {

/// Loads them, for as long as the process lives; what this library calls of PnetCDF goes there. Only one thread may
/// call that. kNotFound, kIo, kUnsupported: there is none, or it cannot be copied or loaded.
nessie::Status load_own_pnetcdf();

}  // namespace embedded
