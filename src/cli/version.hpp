// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "launcher.hpp"

#include <string>

namespace nessie::cli {

/// The libraries that decide what a file looks like: "1.12.3 of 29 Aug 2022", "Open MPI v4.1.4, …". Loads them, for all
/// to see.
std::string pnetcdf_version();
std::string mpi_version();

/// Those whose headers this was built with.
std::string pnetcdf_built_for();  ///< "1.12.3"
MpiFlavour mpi_flavour_built_for();
std::string mpi_built_for();  ///< "4.1.4"

/// Nessie's version, and theirs; a line each.
std::string version();

}  // namespace nessie::cli
