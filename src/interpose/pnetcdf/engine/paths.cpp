// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/paths.hpp>

#include <filesystem>

namespace interpose {

namespace {

std::string absolute(std::string_view path) {
  const std::filesystem::path name(path);
  std::error_code error;
  auto whole = std::filesystem::absolute(name, error);
  if (!name.empty() && !path.ends_with('/')) {
    auto canonical = std::filesystem::weakly_canonical(whole, error);
    if (!error) whole = std::move(canonical);
  }
  return whole.string();
}

}  // namespace

std::vector<std::string> absolute_names(std::string_view path) {
  std::vector<std::string> names{absolute(path)};
  if (const auto colon = path.find(':'); colon != std::string_view::npos)
    names.push_back(absolute(path.substr(colon + 1)));
  return names;
}

}  // namespace interpose
