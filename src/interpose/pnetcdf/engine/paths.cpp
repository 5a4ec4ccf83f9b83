// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/paths.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

namespace interpose {

namespace {

/// The length of an MPI-IO prefix, with its colon; a colon in any other place belongs to the name.
std::size_t prefix_length(std::string_view path) {
  static constexpr std::array<std::string_view, 12> kFileSystems{
      "ufs", "nfs", "xfs", "pvfs", "pvfs2", "lustre", "gpfs", "panfs", "sfs", "testfs", "bglockless", "daos"};
  const auto colon = path.find(':');
  if (colon == std::string_view::npos) return 0;
  const auto name = path.substr(0, colon);
  return std::find(kFileSystems.begin(), kFileSystems.end(), name) != kFileSystems.end() ? colon + 1 : 0;
}

}  // namespace

std::string absolute_path(std::string_view path) {
  const auto prefix = path.substr(0, prefix_length(path));
  const std::filesystem::path name(path.substr(prefix.size()));
  std::error_code error;
  auto absolute = std::filesystem::absolute(name, error);
  if (!name.empty() && !path.ends_with('/')) {
    auto canonical = std::filesystem::weakly_canonical(absolute, error);
    if (!error) absolute = std::move(canonical);
  }
  return std::string(prefix) + absolute.string();
}

std::uint32_t current_umask() {
  // umask(2) can only be asked by changing it, which other threads would notice.
  unsigned mask = 022;
  if (std::FILE *status = std::fopen("/proc/self/status", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, status) != nullptr)
      if (std::sscanf(line, "Umask: %o", &mask) == 1) break;
    std::fclose(status);
  }
  return mask;
}

}  // namespace interpose
