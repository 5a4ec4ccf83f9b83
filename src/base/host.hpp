// SPDX-License-Identifier: BSD-3-Clause
// Which machine this is.
#pragma once

#include <string>

namespace nessie {

/// Its name, as hostname(1) prints it; "unknown" if it has none.
std::string host_name();

/// Which start of its kernel: 36 characters, others each time. Empty where /proc does not tell.
std::string boot_id();

/// Names what processes have in common that can share memory: this start of the kernel, and the network namespace, in
/// which the names of their sockets are. Empty where /proc does not tell.
const std::string &memory_domain();

}  // namespace nessie
