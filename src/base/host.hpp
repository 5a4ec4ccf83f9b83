// SPDX-License-Identifier: BSD-3-Clause
// Which machine this is.
#pragma once

#include <string>

namespace nessie {

/// Its name, as hostname(1) prints it; "unknown" if it has none.
std::string host_name();

/// Which start of its kernel: 36 characters, others each time. Empty where /proc does not tell.
std::string boot_id();

}  // namespace nessie
