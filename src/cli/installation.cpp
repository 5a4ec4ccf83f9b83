// SPDX-License-Identifier: BSD-3-Clause
#include "installation.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

fs::path folder_above_bin() {
  std::error_code error;
  auto self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path("/usr") : self.parent_path().parent_path();
}

Result<std::string> find_file(const std::string &name, const std::vector<std::string> &folders) {
  const auto prefix = folder_above_bin();
  for (const auto &folder : folders) {
    const auto candidate = prefix / folder / name;
    std::error_code error;
    if (fs::is_regular_file(candidate, error)) return candidate.lexically_normal().string();
  }
  return Error{Code::kNotFound, fmt::format("{} is not in {}/{{{}}}: build all of Nessie, or install it again", name,
                                            prefix.string(), fmt::join(folders, ","))};
}

}  // namespace

Result<Installation> Installation::find() {
  auto nessied = find_file("nessied", {"bin", NESSIE_LIBEXECDIR "/nessie"});
  if (!nessied) return nessied.error();
  auto library = find_file("libnessie_pnetcdf.so", {"lib", NESSIE_LIBDIR});
  if (!library) return library.error();
  return Installation{std::move(*nessied), std::move(*library)};
}

Result<std::string> find_bench_program() { return find_file("nessie-bench", {NESSIE_LIBEXECDIR "/nessie", "bin"}); }

}  // namespace nessie::cli
