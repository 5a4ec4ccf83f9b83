// SPDX-License-Identifier: BSD-3-Clause
// What a server must know of this process to find and make the same files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace interpose {

/// The path without links, "." and "..", from the root; a prefix that names a file system to MPI-IO ("ufs:") stays.
std::string absolute_path(std::string_view path);
std::uint32_t current_umask();

}  // namespace interpose
