// SPDX-License-Identifier: BSD-3-Clause
#include "abandoned.hpp"

#include "process.hpp"
#include "run_directory.hpp"
#include "run_lock.hpp"

#include <base/clock.hpp>
#include <base/file.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kDrainPatience{10};

/// What removing it gives back.
std::uint64_t size_of(const std::string &path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

/// Each once, whatever links there are.
std::set<std::string> all_bases() {
  std::set<std::string> found;
  for (const auto &base : run_folder_bases()) {
    std::error_code error;
    const auto path = fs::canonical(base, error);
    if (!error) found.insert(path.string());
  }
  return found;
}

/// What the launcher has told the processes of the job that a folder of CommSplitter's belongs to: its name stands
/// between the prefix and the program's key.
std::string variable_of_job(const std::string &path) {
  const auto job = path.substr(path.rfind('/') + 1 + std::strlen(kSplitFolderPrefix));
  return "PMIX_NAMESPACE=" + job.substr(0, job.rfind('-')) + '\0';
}

void find_in(const std::string &base, std::vector<AbandonedFolder> &found) {
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    const auto path = entry->path().string();
    // The mark is not the whole path: a link may lead there, too. The name is unique.
    if (auto lock = lock_abandoned_run_folder(path))
      found.push_back({path, path.substr(path.rfind('/')), std::move(lock), size_of_all_in(path), {}});
    else if (is_bare_run_folder(path))
      found.push_back({path, path.substr(path.rfind('/')), {}, size_of_all_in(path), {}});
    else if (auto split_lock = lock_abandoned_folder(path, kSplitFolderPrefix))
      found.push_back({path, variable_of_job(path), std::move(split_lock), size_of_all_in(path), {}});
  }
}

bool is_mine(pid_t pid) {
  struct stat status {};
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

/// What a process was started with. Empty: it has ended, or is another user's.
struct Beginning {
  std::string command_line, environment;
};

Beginning beginning_of(pid_t pid) {
  const auto read = [pid](const char *what) {
    const auto text = read_file(fmt::format("/proc/{}/{}", pid, what));
    return text.ok() ? *text : std::string();
  };
  return {read("cmdline"), read("environ")};
}

void note_user(pid_t pid, AbandonedFolder &folder, const Beginning &beginning) {
  const bool is_told = beginning.command_line.find(folder.mark) != std::string::npos;
  if (!is_told && beginning.environment.find(folder.mark) == std::string::npos) return;
  const auto program = first_line_of(fmt::format("/proc/{}/comm", pid));
  folder.users.push_back({pid, program, is_told && program == "nessied" && is_mine(pid)});
}

}  // namespace

std::uint64_t size_of_all_in(const std::string &folder) {
  std::uint64_t size = size_of(folder);
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, error), end; !error && entry != end;
       entry.increment(error))
    size += size_of(entry->path().string());
  return size;
}

std::vector<AbandonedFolder> find_abandoned_folders() {
  std::vector<AbandonedFolder> folders;
  for (const auto &base : all_bases()) find_in(base, folders);
  find_users(folders);
  return folders;
}

void find_users(std::vector<AbandonedFolder> &folders) {
  for (auto &folder : folders) folder.users.clear();
  if (folders.empty()) return;
  for (const pid_t pid : processes()) {
    if (pid == ::getpid()) continue;
    const auto beginning = beginning_of(pid);
    for (auto &folder : folders) note_user(pid, folder, beginning);
  }
}

std::vector<FolderUser> servers_of(const std::vector<AbandonedFolder> &folders) {
  std::map<pid_t, FolderUser> servers;
  for (const auto &folder : folders)
    for (const auto &user : folder.users)
      if (user.is_server) servers.emplace(user.pid, user);
  std::vector<FolderUser> list;
  for (const auto &[pid, server] : servers) list.push_back(server);
  return list;
}

// A server that is told to end finishes what was acknowledged. One that is stopped would not hear it.
std::vector<FolderUser> end_servers(std::vector<AbandonedFolder> &folders) {
  auto servers = servers_of(folders);
  for (const auto &server : servers)
    for (const int signal : {SIGTERM, SIGCONT}) ::kill(server.pid, signal);
  auto left = servers;
  for (const auto deadline = Deadline::in(kDrainPatience); !left.empty() && !deadline.passed();
       left = servers_of(folders)) {
    poll(nullptr, 0, 20);
    find_users(folders);
  }
  std::erase_if(servers, [&](const auto &server) {
    return std::ranges::any_of(left, [&](const auto &other) { return other.pid == server.pid; });
  });
  return servers;
}

}  // namespace nessie::cli
