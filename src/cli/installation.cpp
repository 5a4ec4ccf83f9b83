// SPDX-License-Identifier: BSD-3-Clause
#include "installation.hpp"

#include <fmt/format.h>
#include <sys/auxv.h>

#include <filesystem>
#include <vector>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

Result<std::string> find_file(const std::string &name, const std::vector<std::string> &folders) {
  const fs::path self = own_path();
  if (self.empty())
    return Error{Code::kNotFound,
                 "where Nessie is installed cannot be told: mount /proc, or call nessie by its whole path"};
  const auto prefix = self.parent_path().parent_path();
  for (const auto &folder : folders) {
    const auto candidate = prefix / folder / name;
    std::error_code error;
    if (fs::is_regular_file(candidate, error)) return candidate.lexically_normal().string();
  }
  return Error{Code::kNotFound, fmt::format("{} is not in {}/{{{}}}: build all of Nessie, or install it again", name,
                                            prefix.string(), fmt::join(folders, ","))};
}

}  // namespace

std::string own_path() {
  std::error_code error;
  auto self = fs::read_symlink("/proc/self/exe", error);
  if (!error) return self;
  const auto *name = reinterpret_cast<const char *>(getauxval(AT_EXECFN));  // where there is no /proc
  self = fs::canonical(name == nullptr ? "" : name, error);
  return error ? std::string() : self.string();
}

Result<Installation> Installation::find() {
  auto nessied = find_file("nessied", {"bin", NESSIE_LIBEXECDIR "/nessie"});
  if (!nessied) return nessied.error();
  auto library = find_file("libnessie_pnetcdf.so", {"lib", NESSIE_LIBDIR});
  if (!library) return library.error();
  return Installation{std::move(*nessied), std::move(*library)};
}

Result<MpmdInstallation> MpmdInstallation::find() {
  auto splitter = find_file("libcommsplitter.so", {"lib", NESSIE_LIBDIR});
  if (!splitter) return splitter.error();
  auto rank = find_file("nessie-rank", {"bin", NESSIE_LIBEXECDIR "/nessie"});
  if (!rank) return rank.error();
  return MpmdInstallation{std::move(*splitter), std::move(*rank)};
}

Result<std::string> find_embedded_library() { return find_file("libnessie_embedded.so", {"lib", NESSIE_LIBDIR}); }

Result<std::string> find_streams_program() { return find_file("nessie-streams", {"bin", NESSIE_LIBEXECDIR "/nessie"}); }

Result<std::string> find_bench_program() { return find_file("nessie-bench", {NESSIE_LIBEXECDIR "/nessie", "bin"}); }

}  // namespace nessie::cli
