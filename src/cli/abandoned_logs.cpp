// SPDX-License-Identifier: BSD-3-Clause
#include "abandoned_logs.hpp"

#include "abandoned.hpp"
#include "log_folder.hpp"
#include "logs.hpp"
#include "run_lock.hpp"
#include "speech.hpp"

#include <base/printable.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

/// Why a server's log has to stay; empty: all that was in it is in the files.
std::string why_needed(const std::string &log) {
  if (is_log_in_use(log)) return "a staging server has it open";
  const auto left = look_at_log(log);
  if (!left.ok()) return left.error().message;
  if (!left->files.empty())
    return fmt::format("it has data of {} that are not in the files: `nessie recover {}` puts them there",
                       counted(left->files.size(), "file"), printable(log));
  return left->damage.empty() ? std::string() : left->damage.front().what;
}

std::string why_needed(const Logs &logs) {
  std::set<std::string> known;
  for (const int server : logs.servers) {
    known.insert(logs.path(server));
    if (auto why = why_needed(logs.path(server)); !why.empty()) return why;
  }
  std::error_code error;
  for (fs::directory_iterator entry(logs.folder, error), end; !error && entry != end; entry.increment(error))
    if (!known.contains(entry->path().string())) return "it has something in it that is no server's log";
  return error ? error.message() : std::string();
}

void find_in(const std::string &folder, std::vector<AbandonedLogs> &found) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto path = entry->path().string();
    if (auto spill = lock_abandoned_folder(path, kSpillFolderPrefix)) {
      found.push_back({path, std::move(spill), "", size_of_all_in(path)});
    } else if (auto lock = lock_abandoned_folder(path, kLogFolderPrefix)) {
      const auto logs = find_logs(path);
      found.push_back(
          {path, std::move(lock), logs.ok() ? why_needed(*logs) : logs.error().message, size_of_all_in(path)});
    }
  }
}

/// With its lock, so that no server begins to use it.
std::string remove_log(const std::string &log) {
  const Fd lock(::open((log + "/lock").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return "a staging server has it open now";
  std::error_code error;
  fs::remove_all(log, error);
  return error ? error.message() : std::string();
}

}  // namespace

std::vector<AbandonedLogs> find_abandoned_logs(const std::vector<std::string> &folders) {
  std::set<std::string> each;
  for (const auto &folder : folders) {
    std::error_code error;
    if (const auto path = fs::canonical(folder, error); !error) each.insert(path.string());
  }
  std::vector<AbandonedLogs> found;
  for (const auto &folder : each) find_in(folder, found);
  return found;
}

std::string remove_abandoned_logs(const AbandonedLogs &logs) {
  std::error_code error;
  if (fs::path(logs.path).filename().string().starts_with(kSpillFolderPrefix)) {
    fs::remove_all(logs.path, error);
    return error ? error.message() : std::string();
  }
  if (const auto all = find_logs(logs.path); all.ok())
    for (const int server : all->servers)
      if (auto why = remove_log(all->path(server)); !why.empty()) return why;
  return ::rmdir(logs.path.c_str()) == 0 || errno == ENOENT ? std::string() : std::strerror(errno);
}

}  // namespace nessie::cli
