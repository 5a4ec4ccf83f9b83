// SPDX-License-Identifier: BSD-3-Clause
// A process environment, to be changed and handed to a child.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

class Environment {
 public:
  /// A copy of this process's own.
  static Environment current();

  std::optional<std::string> get(const std::string &name) const;
  void set(const std::string &name, std::string value);
  void unset(const std::string &name);
  /// Drops all variables whose name starts with `prefix`.
  void unset_prefix(std::string_view prefix);
  /// Puts `value` at the end of a list joined by `separator`, unless it is in it already.
  void append(const std::string &name, const std::string &value, char separator);

  /// For execve: "NAME=value" and a null pointer at the end. Borrows from this object until it is changed.
  std::vector<char *> to_envp();

 private:
  std::map<std::string, std::string> variables_;
  std::vector<std::string> lines_;
};

struct Staging {
  std::string preload_library;
  std::vector<std::string> server_urls;
  std::string credential;
  std::string notes = {};   ///< where the interposer's notes go; empty: nowhere
  std::string boards = {};  ///< how many there are, and in which folder; empty: none
};
/// Adds what puts the interposer in front of an application: LD_PRELOAD, NESSIE_SERVERS, NESSIE_CREDENTIAL,
/// NESSIE_NOTES, NESSIE_BOARDS; ASAN_OPTIONS; and has libfabric leave crashes alone.
void put_in_front(const Staging &staging, Environment &environment);

/// Has the program's Open MPI keep its shared memory and its session's files in `folder`, in memory, unless the user
/// chose a place: so that whoever removes the folder removes what ranks that were killed left there. Every MPI file
/// that is opened makes, and removes, a file of the session's; on a disk that takes longer than all of the rest.
void keep_shared_memory_in(const std::string &folder, Environment &environment);

/// For a process that shall be an MPI singleton: removes what a launcher tells its ranks, and whatever is preloaded,
/// and has Open MPI keep its session files in `scratch_folder`, so that none are left when the process is killed.
void make_singleton(const std::string &scratch_folder, Environment &environment);

}  // namespace nessie::cli
