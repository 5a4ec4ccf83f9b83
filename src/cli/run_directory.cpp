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

std::string make_in(const std::string &base) {
  std::string path = base + "/nessie-XXXXXX";
  return mkdtemp(path.data()) ? path : std::string();
}

}  // namespace

Result<RunDirectory> RunDirectory::make() {
  const char *runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_dir && *runtime_dir == '/' && std::strlen(runtime_dir) <= kMaxBaseLength) {
    if (auto path = make_in(runtime_dir); !path.empty()) return RunDirectory(std::move(path));
  }
  if (auto path = make_in("/tmp"); !path.empty()) return RunDirectory(std::move(path));
  const int cause = errno;
  return Error{Code::kIo, fmt::format("cannot make a folder in /tmp: {}; make it writable, or set XDG_RUNTIME_DIR",
                                      std::strerror(cause)), Scope::kProcess, cause};
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace nessie::cli
