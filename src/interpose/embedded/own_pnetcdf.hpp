// SPDX-License-Identifier: BSD-3-Clause
// The PnetCDF that servers in a program's process call: a copy of the library of their own, because PnetCDF is not made
// for threads.
#pragma once

#include <nessie/result.hpp>

namespace embedded {

/// Loads it, for as long as the process lives; what this library calls of PnetCDF goes there. One thread. kNotFound,
/// kIo: there is none, or it cannot be copied or loaded.
nessie::Status load_own_pnetcdf();

}  // namespace embedded
