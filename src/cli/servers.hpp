// SPDX-License-Identifier: BSD-3-Clause
// The staging servers of one `nessie run`, however they were started: as its children here; or by agents, which a
// launcher has started (agents.hpp).
#pragma once

#include "process.hpp"
#include "run_directory.hpp"

#include <base/clock.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

struct ServerOptions {
  std::string program;  ///< nessied
  int first = 0;        ///< the index of the first one to start
  int count = 1;        ///< how many to start
  int of = 1;           ///< how many the run has
  std::string mode, memory;
  std::string credential;
  std::string board_directory;          ///< where programs of the run look for what is not in the files yet
  std::vector<std::string> cores = {};  ///< "6-7" for each of those to start; missing or empty: any
  /// Each server's extra arguments, e.g. where to listen.
  std::vector<std::string> arguments;
};

class Servers {
 public:
  Servers() = default;
  Servers(const Servers &) = delete;
  virtual ~Servers() = default;

  int count() const { return static_cast<int>(servers_.size()); }
  /// Takes note of what has happened since; to be called again and again.
  virtual void look() = 0;
  /// Where each can be reached; empty: it does not listen yet.
  std::vector<std::string> urls() const;
  int listening() const;
  bool all_listen() const { return listening() == count(); }
  /// The node of one; empty: it does not listen yet.
  const std::string &host(int index) const { return server(index).host; }
  bool running(int index) const { return !server(index).end; }
  bool any_running() const;
  /// Whether who would tell of its end is gone, with its node perhaps: then connections to it need not break.
  virtual bool is_left_alone(int) const { return false; }
  /// Such a one counts as ended from now on.
  void note_lost(int index);
  /// One that has never listened is not waited for any more.
  void note_absent(int index);
  /// How a server ended: "was killed by signal 9 (Killed)".
  const std::string &how_it_ended(int index) const { return *server(index).end; }
  /// Why not all will ever listen, apart from those that have ended; empty: nothing is known of that.
  virtual std::string why_not_all() const { return {}; }
  /// Whether the program's job, of which the servers are a part, has done with MPI: it waits for them to end.
  virtual bool is_program_over() const { return false; }

  /// Takes note of a child that was reaped, if it is one of them.
  virtual void note_exit(pid_t pid, int wait_status) = 0;
  /// Whether a child of this process is one of them, or has to do with them.
  virtual bool owns(pid_t pid) const = 0;
  /// SIGKILL to a server that runs, and to its process group.
  virtual void kill(int index) = 0;
  void kill_all();

 protected:
  struct Server {
    pid_t pid = -1;
    std::string url = {}, host = {};
    std::optional<std::string> end = {};
    int exit_code = 0;
  };
  const Server &server(int index) const { return servers_[static_cast<std::size_t>(index)]; }
  std::vector<Server> servers_;
};

/// Singletons on this node, each in a process group of its own, so that the terminal's Ctrl-C does not reach them. They
/// watch a pipe that closes when this process dies, however it dies; then they drain, clean up and exit by themselves.
class ChildServers final : public Servers {
 public:
  /// Starts them; does not wait until they listen. Kills those that were started if one cannot be.
  static Result<std::unique_ptr<ChildServers>> start(const ServerOptions &options, const RunDirectory &folder,
                                                     const Signals &signals);
  /// Kills what still runs.
  ~ChildServers() override;

  void look() override;
  void note_exit(pid_t pid, int wait_status) override;
  /// Takes note of all children of this process that have ended.
  void reap();
  /// Of one that has ended, as a shell says it.
  int exit_code(int index) const { return server(index).exit_code; }
  bool owns(pid_t pid) const override;
  void kill(int index) override;
  /// Has them finish what they have acknowledged, and end.
  void end();

 private:
  ChildServers(const RunDirectory &folder, int first) : folder_(folder.path()), first_(first) {}
  const std::string folder_;
  const int first_;
  int life_line_ = -1;  ///< the pipe's end that closes with this process
};

}  // namespace nessie::cli
