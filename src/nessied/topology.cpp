// SPDX-License-Identifier: BSD-3-Clause
#include "topology.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <cstdlib>
#include <memory>

namespace nessied {

namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

Topology load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  Topology owned(topology);
  return hwloc_topology_load(topology) == 0 ? std::move(owned) : nullptr;
}

std::string list_of(hwloc_const_cpuset_t cores) {
  char *text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, cores) < 0) return {};
  std::string list(text);
  std::free(text);
  return list;
}

}  // namespace

Result<std::string> cores_of_numa_node(unsigned number) {
  const auto topology = load_topology();
  if (!topology) return Error{Code::kUnsupported, "hwloc cannot tell which cores this machine has: name them instead"};
  const auto *node = hwloc_get_numanode_obj_by_os_index(topology.get(), number);
  if (node != nullptr)
    if (auto cores = list_of(node->cpuset); !cores.empty()) return cores;
  return Error{Code::kNotFound,
               fmt::format("this machine has no NUMA node {} with cores for this process; it has {} nodes", number,
                           hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE))};
}

}  // namespace nessied
