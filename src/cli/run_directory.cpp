// SPDX-License-Identifier: BSD-3-Clause
#include "run_directory.hpp"

#include "run_lock.hpp"

#include <base/printable.hpp>

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <vector>

namespace nessie::cli {

namespace {

constexpr std::uint64_t kRoomNeeded = 1 << 20;  // for ledgers and reports, or boards

/// Whether other users may pass through the folder, and through all above it.
bool others_may_enter(const std::string &folder) {
  std::error_code error;
  auto path = std::filesystem::canonical(folder, error);
  for (; !error; path = path.parent_path()) {
    const auto mode = std::filesystem::status(path, error).permissions();
    if ((mode & std::filesystem::perms::others_exec) == std::filesystem::perms::none) return false;
    if (!path.has_relative_path()) return true;
  }
  return false;
}

bool has_room(const std::string &base) {
  struct statvfs space {};
  return statvfs(base.c_str(), &space) == 0 && std::uint64_t{space.f_bavail} * space.f_frsize >= kRoomNeeded;
}

}  // namespace

std::vector<std::string> run_folder_bases() {
  std::vector<std::string> found;
  for (const char *name : {"XDG_RUNTIME_DIR", "TMPDIR"})
    if (const char *base = std::getenv(name); base != nullptr && *base == '/') found.emplace_back(base);
  for (const char *base : {"/tmp", "/var/tmp", "/dev/shm", "/run/shm"}) found.emplace_back(base);
  const auto is_awkward = [](const std::string &base) {
    return base.size() > kMaxBaseLength || base.find_first_of(kPreloadSeparators) != std::string::npos;
  };
  std::stable_partition(found.begin(), found.end(), std::not_fn(is_awkward));
  return found;
}

RunDirectory::RunDirectory(std::string path) : path_(std::move(path)), lock_(lock_run_folder(path_)) {}

Result<RunDirectory> RunDirectory::make_in(const std::string &base) {
  std::string path = base + "/" + kRunFolderPattern;
  if (mkdtemp(path.data())) {
    RunDirectory folder(std::move(path));
    const bool was_removed = !folder.lock_ && ::access(folder.path_.c_str(), F_OK) != 0;  // by `nessie clean`, just now
    return was_removed ? make_in(base) : std::move(folder);
  }
  const int cause = errno;
  return Error{Code::kIo,
               fmt::format("cannot make a folder in {}: {}; make it writable, or set XDG_RUNTIME_DIR", base,
                           std::strerror(cause)),
               Scope::kProcess, cause};
}

Result<RunDirectory> RunDirectory::make() {
  std::string tried;
  for (const auto &base : run_folder_bases()) {
    if (cli::has_room(base))
      if (auto folder = make_in(base)) return folder;
    tried += (tried.empty() ? "" : ", ") + printable(base);
  }
  return Error{Code::kIo,
               fmt::format("no folder can be made: none of {} can be written and has 1 MiB of room; set TMPDIR", tried),
               Scope::kProcess};
}

Result<RunDirectory> RunDirectory::make_for_others() {
  for (const auto &base : run_folder_bases()) {
    if (!others_may_enter(base) || !cli::has_room(base)) continue;
    auto folder = make_in(base);
    if (folder && ::chmod(folder->path().c_str(), 0711) == 0) return folder;
  }
  return Error{Code::kIo, "no folder that others may enter can be made", Scope::kProcess};
}

bool RunDirectory::has_room() const { return cli::has_room(path_); }

// Who is root may run programs as another user, with folders of their own in here, as in /tmp.
void RunDirectory::share() const {
  if (::geteuid() == 0) (void)::chmod(path_.c_str(), 01777);
}

RunDirectory::~RunDirectory() {
  if (!path_.empty()) (void)remove_run_folder(path_);
}

}  // namespace nessie::cli
