// SPDX-License-Identifier: BSD-3-Clause
// Which cores belong to which memory, by hwloc.
#pragma once

#include <nessie/result.hpp>

#include <string>

namespace nessied {

/// "0-7,16-23". kNotFound: this machine has no such NUMA node, or none of its cores is for this process.
nessie::Result<std::string> cores_of_numa_node(unsigned number);

}  // namespace nessied
