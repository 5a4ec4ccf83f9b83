// SPDX-License-Identifier: BSD-3-Clause
// How much memory the staging servers may use when nobody says.
#pragma once

#include <cstdint>
#include <string>

namespace nessie::cli {

/// What this process's machine, or its control group, can still give.
std::uint64_t available_memory_bytes();
/// A quarter of it, shared among `servers`, as "512M"; at least "64M".
std::string default_memory_of_each(int servers);

}  // namespace nessie::cli
