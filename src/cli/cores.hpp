// SPDX-License-Identifier: BSD-3-Clause
// Which cores a node has, and which of them share their memory.
#pragma once

#include <nessie/result.hpp>

#include <string>
#include <vector>

namespace nessie::cli {

/// The hardware threads of a core, by the numbers that the kernel gives them.
using Core = std::vector<int>;
using Cores = std::vector<Core>;

/// "0,2-3": all hardware threads of these cores.
std::string to_text(const Cores &cores);

struct NodeCores {
  std::vector<Cores> domains;  ///< those of each NUMA domain that has any
  int count() const;
};

/// By hwloc, of those that this process may use. kUnsupported: hwloc cannot tell.
Result<NodeCores> cores_of_this_node();

}  // namespace nessie::cli
