// SPDX-License-Identifier: BSD-3-Clause
#include "control_groups.hpp"

#include <base/config.hpp>
#include <base/file.hpp>

#include <algorithm>
#include <fstream>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

void add_way_up(const fs::path &top, fs::path group, int version, std::vector<ControlGroup> &groups) {
  groups.push_back({top, version});
  for (; group.has_relative_path(); group = group.parent_path())
    groups.push_back({top / group.relative_path(), version});
}

/// Empty: it has none ("max", -1), or cannot be read.
std::optional<double> processors_of(const ControlGroup &group) {
  double quota = 0, period = 0;
  if (group.version == 2) {
    std::ifstream file(group.folder / "cpu.max");
    file >> quota >> period;
  } else {
    std::ifstream(group.folder / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group.folder / "cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

std::vector<ControlGroup> control_group_folders(const std::string &membership, const std::string &controller,
                                                const std::string &mounted_at) {
  std::vector<ControlGroup> groups;
  for (const auto &line : split(membership, "\n")) {  // "4:memory,cpu:/slurm/job_7", or of version 2 "0::/slurm/job_7"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ",");
    const fs::path group = line.substr(second + 1), top = mounted_at;
    if (line.starts_with("0::")) add_way_up(top, group, 2, groups);
    if (std::ranges::count(controllers, controller) > 0) add_way_up(top / controller, group, 1, groups);
  }
  return groups;
}

std::string control_group_membership() {
  const auto membership = read_file("/proc/self/cgroup");
  return membership ? *membership : "0::/";
}

std::optional<double> control_group_processors(const std::string &membership, const std::string &mounted_at) {
  std::optional<double> least;
  for (const auto &group : control_group_folders(membership, "cpu", mounted_at)) {
    const auto processors = processors_of(group);
    if (processors && (!least || *processors < *least)) least = processors;
  }
  return least;
}

}  // namespace nessie::cli
