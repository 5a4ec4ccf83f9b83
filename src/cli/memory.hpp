// SPDX-License-Identifier: BSD-3-Clause
// How much memory the staging servers may use when nobody says.
#pragma once

#include "environment.hpp"

#include <cstdint>
#include <string>

namespace nessie::cli {

/// What the control groups leave that `membership` (the text of /proc/self/cgroup) names, and those that they are in;
/// 2^64 - 1: they have no limit.
std::uint64_t control_group_available_bytes(const std::string &membership, const std::string &mounted_at);
/// What Slurm has allocated on this node, by the variables of a job or a step; 2^64 - 1: all of it, or this is no job.
std::uint64_t slurm_allocated_bytes(const Environment &environment);
/// What this process's machine, its control groups, or its job, can still give.
std::uint64_t available_memory_bytes();
/// A quarter of it, shared among `servers`, as "512M"; at least "64M".
std::string default_memory_of_each(int servers);

/// What the limits on address space, data and files (ulimit -v, -d, -f) leave a server for data of programs.
std::uint64_t memory_within_limits();

}  // namespace nessie::cli
