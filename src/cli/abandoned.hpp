// SPDX-License-Identifier: BSD-3-Clause
// What runs of this user have left behind that were killed together with their janitors, and what jobs of several
// programs (CommSplitter) have that were no run's.
#pragma once

#include <base/fd.hpp>

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nessie::cli {

/// A process that has the mark of a folder in its command line or its environment.
struct FolderUser {
  pid_t pid;
  std::string name;
  bool is_server;  ///< a nessied of this user's that was started for that run
};

struct AbandonedFolder {
  std::string path;
  std::string mark;  ///< what only its processes have: a run's its name, a job's the job's variable
  Fd lock;           ///< held, so that no other `nessie clean` is at it; invalid: nothing was in it, and no lock
  std::uint64_t size_bytes = 0;
  std::vector<FolderUser> users;
};

/// What removing a folder gives back.
std::uint64_t size_of_all_in(const std::string &folder);

/// The folders, wherever `nessie run` may make them, that are this user's and whose run and janitor are gone; and those
/// of CommSplitter in /dev/shm whose job is.
std::vector<AbandonedFolder> find_abandoned_folders();

/// Looks for the users anew: some may have ended.
void find_users(std::vector<AbandonedFolder> &folders);

/// Those of all of the folders, each once.
std::vector<FolderUser> servers_of(const std::vector<AbandonedFolder> &folders);

/// Asks the servers of these folders to end, and waits, for some seconds at most, until they have written what programs
/// gave them, and gone. One that is not done by then goes on. Returns those that have ended.
std::vector<FolderUser> end_servers(std::vector<AbandonedFolder> &folders);

}  // namespace nessie::cli
