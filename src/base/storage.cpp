// SPDX-License-Identifier: BSD-3-Clause
#include <base/storage.hpp>

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace nessie {

bool is_in_memory(const std::string &path) {
  struct statfs system {};
  const auto folder = std::filesystem::path(path).parent_path();
  if (::statfs(path.c_str(), &system) != 0 && ::statfs(folder.empty() ? "." : folder.c_str(), &system) != 0)
    return false;
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

std::optional<std::string> folder_on_disk() {
  const char *said = std::getenv("TMPDIR");
  for (const std::string folder : {said != nullptr ? said : "", "/var/tmp"})
    if (folder.starts_with('/') && ::access(folder.c_str(), W_OK | X_OK) == 0 && !is_in_memory(folder)) return folder;
  return std::nullopt;
}

}  // namespace nessie
