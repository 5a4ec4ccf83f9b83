// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include "control_groups.hpp"

#include <base/config.hpp>
#include <base/descriptors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t machine_available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (std::uint64_t kib = 0; file >> name;) {
    if (name == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return 1024 * kMiB;
}

constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();

std::uint64_t number_in(const fs::path &path, std::uint64_t otherwise) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : otherwise;  // "max" is no number
}

std::uint64_t number_behind(const std::string &name, const fs::path &path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  for (std::string word; file >> word >> value;) {
    if (word == name) return value;
  }
  return 0;
}

/// How one version of control groups calls what is asked for.
struct MemoryFiles {
  const char *limit, *used,
      *reclaimable;  ///< the last one in memory.stat: copies of files, which the kernel gives back
};
constexpr MemoryFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr MemoryFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};

std::uint64_t available_in(const fs::path &folder, const MemoryFiles &files) {
  const auto limit = number_in(folder / files.limit, kNone);
  if (limit == kNone) return kNone;
  const auto used = number_in(folder / files.used, 0);
  return limit - std::min(limit, used - std::min(used, number_behind(files.reclaimable, folder / "memory.stat")));
}

}  // namespace

std::uint64_t control_group_available_bytes(const std::string &membership, const std::string &mounted_at) {
  auto least = kNone;
  for (const auto &[folder, version] : control_group_folders(membership, "memory", mounted_at))
    least = std::min(least, available_in(folder, version == 2 ? kVersion2 : kVersion1));
  return least;
}

std::uint64_t slurm_allocated_bytes(const Environment &environment) {
  const auto number = [&](const char *variable) {
    std::uint64_t value = 0;
    std::istringstream(environment.get(variable).value_or("")) >> value;
    return value;
  };
  auto mib = number("SLURM_MEM_PER_NODE");  // 0: all
  if (mib == 0) mib = number("SLURM_MEM_PER_CPU") * number("SLURM_CPUS_ON_NODE");
  return mib > 0 && mib < kNone / kMiB ? mib * kMiB : kNone;
}

std::uint64_t available_memory_bytes() {
  const auto of_group = control_group_available_bytes(control_group_membership(), kControlGroups);
  return std::min({machine_available_bytes(), of_group, slurm_allocated_bytes(Environment::current())});
}

std::string default_memory_of_each(int servers) {
  const auto share = available_memory_bytes() / 4 / static_cast<std::uint64_t>(std::max(servers, 1));
  return fmt::format("{}M", std::max<std::uint64_t>(share / kMiB, 64));
}

std::uint64_t memory_within_limits() {
  constexpr std::uint64_t kAddressSpaceOfServer = 640 * kMiB, kDataOfServer = 128 * kMiB;  // MPI's libraries, mostly
  constexpr std::uint64_t kSharedMemory = 4 * kMiB;  // of a connection: it counts as a file
  if (highest_limit(RLIMIT_FSIZE) < kSharedMemory) return 0;
  const std::uint64_t space = highest_limit(RLIMIT_AS), data = highest_limit(RLIMIT_DATA);
  return std::min(space - std::min(space, kAddressSpaceOfServer), data - std::min(data, kDataOfServer));
}

}  // namespace nessie::cli
