// SPDX-License-Identifier: BSD-3-Clause
// What this machine, and this process's limits, allow to transports.
#pragma once

#include <nnti/nnti.hpp>

#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

/// "works", or why not, and what would allow it. Forks: to be called before a network library is opened.
std::string try_cross_memory_attach();
/// Yama's, which may forbid it; empty: this kernel has none.
std::optional<int> ptrace_scope();
/// Descriptors, locked memory, shared memory, processors; each with what it is good for.
std::vector<nnti::Fact> limits_of_this_process();

}  // namespace nessie::cli
