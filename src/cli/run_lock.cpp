// SPDX-License-Identifier: BSD-3-Clause
#include "run_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

namespace nessie::cli {

namespace {

constexpr const char *kLockName = "/run.lock";

bool lock(const Fd &file, int how) {
  while (::flock(file.get(), how) != 0)
    if (errno != EINTR) return false;
  return true;
}

bool is_mine(const struct stat &status, mode_t kind) {
  return (status.st_mode & S_IFMT) == kind && status.st_uid == ::geteuid();
}

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

}  // namespace

Fd lock_run_folder(const std::string &folder) {
  const auto path = folder + kLockName;
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return {};
  struct stat status {};
  if (lock(file, LOCK_EX) && ::fstat(file.get(), &status) == 0 && status.st_nlink > 0) return file;
  ::unlink(path.c_str());
  return {};
}

Fd lock_abandoned_run_folder(const std::string &folder) {
  struct stat status {};
  if (!is_run_folder_name(std::filesystem::path(folder).filename().string())) return {};
  if (::lstat(folder.c_str(), &status) != 0 || !is_mine(status, S_IFDIR)) return {};
  Fd file(::open((folder + kLockName).c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file || ::fstat(file.get(), &status) != 0 || !is_mine(status, S_IFREG)) return {};
  return lock(file, LOCK_EX | LOCK_NB) ? std::move(file) : Fd();
}

bool is_bare_run_folder(const std::string &folder) {
  struct stat status {};
  std::error_code error;
  return is_run_folder_name(std::filesystem::path(folder).filename().string()) &&
         ::lstat(folder.c_str(), &status) == 0 && is_mine(status, S_IFDIR) && std::filesystem::is_empty(folder, error);
}

Fd lock_folder(const std::string &folder) {
  Fd file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !is_mine(status, S_IFDIR)) return {};
  return lock(file, LOCK_EX | LOCK_NB) ? std::move(file) : Fd();
}

Fd lock_abandoned_folder(const std::string &folder, std::string_view prefix) {
  return std::filesystem::path(folder).filename().string().starts_with(prefix) ? lock_folder(folder) : Fd();
}

bool is_run_folder_name(const std::string &name) {
  constexpr std::string_view pattern = kRunFolderPattern;
  const auto fixed = pattern.find('X');
  return name.size() == pattern.size() && name.starts_with(pattern.substr(0, fixed)) &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(fixed), name.end(), is_letter_or_digit);
}

std::error_code remove_run_folder(const std::string &folder) {
  std::error_code error, ignored;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path() != folder + kLockName) std::filesystem::remove_all(entry.path(), ignored);
  std::filesystem::remove_all(folder, error);
  return error;
}

}  // namespace nessie::cli
