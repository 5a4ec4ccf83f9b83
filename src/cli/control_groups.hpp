// SPDX-License-Identifier: BSD-3-Clause
// The control groups that this process is in: what a batch system or a container gives it of the machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

inline constexpr char kControlGroups[] = "/sys/fs/cgroup";

struct ControlGroup {
  std::filesystem::path folder;
  int version;  ///< whose files it has: 1 or 2
};
/// All whose limits of `controller` hold for a process with that membership (the text of /proc/self/cgroup): its own,
/// and those that they are in. Where a container hides those above it, the process's own is at the top.
std::vector<ControlGroup> control_group_folders(const std::string &membership, const std::string &controller,
                                                const std::string &mounted_at);
/// This process's.
std::string control_group_membership();

/// How many processors' time the narrowest of them allows, 1.5 say; empty: they have no limit.
std::optional<double> control_group_processors(const std::string &membership, const std::string &mounted_at);

}  // namespace nessie::cli
