// SPDX-License-Identifier: BSD-3-Clause
// What NNTI moves one-sidedly between two processes, one transfer at a time, polling.
#pragma once

#include "baselines.hpp"
#include "options.hpp"

#include <map>
#include <string>
#include <vector>

namespace bench {

/// "mapped": memory that Nessie allocated, which a peer on this node maps; "application": a process's own.
inline constexpr const char *kOneSided[] = {"get-mapped", "put-mapped", "get-application", "put-application"};

/// Times of transfers between memory of this process's own and that of a follower, by the words above.
nessie::Result<std::map<std::string, TimesBySize>> one_sided_times(const Options &options,
                                                                   const std::vector<std::uint64_t> &sizes);

}  // namespace bench
