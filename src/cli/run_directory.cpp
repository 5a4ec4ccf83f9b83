// SPDX-License-Identifier: BSD-3-Clause
#include "run_directory.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace nessie::cli {

namespace {

// Sockets live in the folder, and their paths are short by law (sun_path).
constexpr std::size_t kMaxBaseLength = 64;

}  // namespace

Result<RunDirectory> RunDirectory::make_in(const std::string &base) {
  std::string path = base + "/nessie-XXXXXX";
  if (mkdtemp(path.data())) return RunDirectory(std::move(path));
  const int cause = errno;
  return Error{Code::kIo,
               fmt::format("cannot make a folder in {}: {}; make it writable, or set XDG_RUNTIME_DIR", base,
                           std::strerror(cause)),
               Scope::kProcess, cause};
}

Result<RunDirectory> RunDirectory::make() {
  const char *runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_dir && *runtime_dir == '/' && std::strlen(runtime_dir) <= kMaxBaseLength) {
    if (auto folder = make_in(runtime_dir)) return folder;
  }
  return make_in("/tmp");
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace nessie::cli
