// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace interpose {

/// Absolute names of the file that `path` may mean, the likelier first: one, unless there is a colon in it. What stands
/// before the first colon is a file system's name to PnetCDF, and to ROMIO, and part of the name to Open MPI's own
/// MPI-IO.
std::vector<std::string> absolute_names(std::string_view path);

}  // namespace interpose
