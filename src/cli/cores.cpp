// SPDX-License-Identifier: BSD-3-Clause
#include "cores.hpp"

#include <service/topology.hpp>

#include <memory>
#include <set>

namespace nessie::cli {

namespace {

Core threads_in(hwloc_const_cpuset_t set) {
  Core threads;
  for (int thread = hwloc_bitmap_first(set); thread >= 0; thread = hwloc_bitmap_next(set, thread))
    threads.push_back(thread);
  return threads;
}

/// Where hwloc knows no cores, each hardware thread is one.
Cores cores_in(hwloc_topology_t topology, hwloc_const_cpuset_t set) {
  Cores cores;
  const auto type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_inside_cpuset_by_type(topology, set, type, object)) != nullptr)
    cores.push_back(threads_in(object->cpuset));
  return cores;
}

/// Several domains may be of the same cores: fast memory beside the usual one.
NodeCores read_cores(hwloc_topology_t topology) {
  NodeCores node;
  std::set<Core> known;
  hwloc_obj_t domain = nullptr;
  while ((domain = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, domain)) != nullptr) {
    auto cores = cores_in(topology, domain->cpuset);
    if (!cores.empty() && known.insert(threads_in(domain->cpuset)).second) node.domains.push_back(std::move(cores));
  }
  return node;
}

}  // namespace

std::string to_text(const Cores &cores) {
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> threads(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  for (const auto &core : cores)
    for (const int thread : core) hwloc_bitmap_set(threads.get(), static_cast<unsigned>(thread));
  return service::list_of(threads.get());
}

int NodeCores::count() const {
  std::size_t count = 0;
  for (const auto &domain : domains) count += domain.size();
  return static_cast<int>(count);
}

Result<NodeCores> cores_of_this_node() {
  const auto topology = service::load_topology();
  auto node = topology ? read_cores(topology.get()) : NodeCores{};
  if (node.domains.empty()) return Error{Code::kUnsupported, "hwloc cannot tell which cores this machine has"};
  return node;
}

}  // namespace nessie::cli
