// SPDX-License-Identifier: BSD-3-Clause
// The staging servers of one `nessie run`: singletons on this node, each in a process group of its own, so that the
// terminal's Ctrl-C does not reach them. They watch a pipe that closes when this process dies, however it dies; then
// they drain, clean up and exit by themselves.
#pragma once

#include "process.hpp"
#include "run_directory.hpp"

#include <base/clock.hpp>

#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

struct ServerOptions {
  std::string program;  ///< nessied
  int count = 1;
  std::string mode, memory;
  std::string credential;
  std::string board_directory;  ///< where programs of the run look for what is not in the files yet
  /// Each server's extra arguments, e.g. where to listen.
  std::vector<std::string> arguments;
};

class Servers {
 public:
  /// Starts them; does not wait until they listen. Kills those that were started if one cannot be.
  static Result<Servers> start(const ServerOptions &options, const RunDirectory &folder, const Signals &signals);
  Servers(Servers &&other) noexcept;
  Servers &operator=(Servers &&) = delete;
  /// Kills what still runs.
  ~Servers();

  int count() const { return static_cast<int>(servers_.size()); }
  pid_t pid(int index) const { return servers_[index].pid; }
  bool running(int index) const { return !servers_[index].wait_status; }
  bool any_running() const;
  /// The wait status of a server that ended.
  int wait_status(int index) const { return *servers_[index].wait_status; }

  /// Reads the URL files that have appeared; true when all are there.
  bool find_urls(const RunDirectory &folder);
  std::vector<std::string> urls() const;

  /// Takes note of a child that was reaped; the server's index, or nothing if it is none of them.
  std::optional<int> note_exit(pid_t pid, int wait_status);
  bool owns(pid_t pid) const;
  /// SIGKILL to every server that runs, and to its process group.
  void kill_all();
  void kill(int index);

 private:
  struct Server {
    pid_t pid = -1;
    std::string url;
    std::optional<int> wait_status;
  };
  Servers() = default;
  std::vector<Server> servers_;
  int life_line_ = -1;  ///< the pipe's end that closes with this process
};

}  // namespace nessie::cli
