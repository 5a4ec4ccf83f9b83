// SPDX-License-Identifier: BSD-3-Clause
#include "run_folders.hpp"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace nessie::cli {

namespace {

std::optional<RunDirectory> if_made(Result<RunDirectory> folder) {
  return folder ? std::optional<RunDirectory>(*std::move(folder)) : std::nullopt;
}

}  // namespace

RunFolders::RunFolders(RunDirectory own, std::optional<LogFolder> log_folder, bool other_nodes,
                       const std::string &credential)
    : own_(std::move(own)),
      log_(std::move(log_folder)),
      in_memory_(other_nodes ? std::nullopt : if_made(RunDirectory::make_in("/dev/shm"))) {
  if (in_memory_) in_memory_->share();
  const bool has_room = in_memory_ && in_memory_->has_room();
  const bool is_root = ::geteuid() == 0;  // which may start other users' programs
  if (!has_room && is_root) {
    if (auto made = RunDirectory::make_for_others()) for_others_.emplace(*std::move(made));
  }
  open_ = (has_room ? *in_memory_ : for_others_ ? *for_others_ : own_).path();
  std::vector<std::string> all = {own_.path()};
  for (const auto *folder : {&in_memory_, &for_others_})
    if (*folder) all.push_back((*folder)->path());
  if (log_) log_->note_in(own_.path());
  janitor_.emplace(all, log(), credential);
}

std::string RunFolders::preloadable(const std::string &library) const {
  if (library.find_first_of(kPreloadSeparators) == std::string::npos) return library;
  const std::filesystem::path path(library);
  std::error_code error;
  std::filesystem::create_directory_symlink(path.parent_path(), open_ + "/lib", error);
  return open_ + "/lib/" + path.filename().string();
}

}  // namespace nessie::cli
