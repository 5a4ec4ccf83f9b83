// SPDX-License-Identifier: BSD-3-Clause
// What this process may use of its machine, by hwloc. Who includes this is linked to hwloc.
#pragma once

#include <hwloc.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace nessie::service {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

/// Null: hwloc cannot tell.
inline Topology load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  Topology owned(topology);
  return hwloc_topology_load(topology) == 0 ? std::move(owned) : nullptr;
}

/// "0-7,16-23". Empty, if there are none.
inline std::string list_of(hwloc_const_cpuset_t cores) {
  char *text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, cores) < 0) return {};
  std::string list(text);
  std::free(text);
  return list;
}

}  // namespace nessie::service
