// SPDX-License-Identifier: BSD-3-Clause
// What NNTI moves one-sidedly between two processes, one transfer at a time, polling.
#pragma once

#include "crew.hpp"
#include "options.hpp"

#include <memory>
#include <vector>

namespace bench {

/// Transfers between memory of this process's own and that of a follower, in MB/s. Their modes are get-mapped,
/// put-mapped, get-application and put-application: "mapped" is memory that Nessie allocated, which a peer on this node
/// maps; "application" a process's own.
nessie::Result<std::unique_ptr<Board>> run_one_sided(const Options &options, const std::vector<std::uint64_t> &sizes);

}  // namespace bench
