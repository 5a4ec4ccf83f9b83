// SPDX-License-Identifier: BSD-3-Clause
#include "topology.hpp"

#include <service/topology.hpp>

#include <fmt/format.h>

namespace nessied {

namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;

}  // namespace

Result<std::string> cores_of_numa_node(unsigned number) {
  const auto topology = nessie::service::load_topology();
  if (!topology) return Error{Code::kUnsupported, "hwloc cannot tell which cores this machine has: name them instead"};
  const auto *node = hwloc_get_numanode_obj_by_os_index(topology.get(), number);
  if (node != nullptr)
    if (auto cores = nessie::service::list_of(node->cpuset); !cores.empty()) return cores;
  return Error{Code::kNotFound,
               fmt::format("this machine has no NUMA node {} with cores for this process; it has {} nodes", number,
                           hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE))};
}

}  // namespace nessied
