// SPDX-License-Identifier: BSD-3-Clause
// The staging servers of one `nessie run`, however they were started: as its children here; or by agents, which a
// launcher has started (agents.hpp).
#pragma once

#include "log_folder.hpp"
#include "process.hpp"
#include "restarts.hpp"
#include "run_directory.hpp"

#include <base/clock.hpp>
#include <base/fd.hpp>

#include <chrono>
#include <functional>
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
  std::string durability = {};                 ///< empty: as the settings say
  std::string log_folder = {};                 ///< where each has its log, as server.N; empty: none is started again
  std::chrono::milliseconds patience{30'000};  ///< with one that is started again, until it listens
  std::string credential;
  std::string board_directory;          ///< where programs of the run look for what is not in the files yet
  std::vector<std::string> cores = {};  ///< "6-7" for each of those to start; missing or empty: any
  /// Each server's extra arguments, e.g. where to listen.
  std::vector<std::string> arguments = {};
  /// Called with its index before one is started again, while what the last one left is still there.
  std::function<void(int index)> before_restart = {};
  /// Where all servers of the run are, in their order, if not all of them are started here; empty: not known.
  std::function<std::vector<std::string>()> all_urls = {};
};

class Servers {
 public:
  Servers() = default;
  Servers(const Servers &) = delete;
  virtual ~Servers() = default;

  int count() const { return static_cast<int>(servers_.size()); }
  /// Takes note of what has happened since; to be called again and again.
  virtual void look() = 0;
  /// When look() has something to do of which no child's end tells.
  virtual Deadline due() const { return Deadline::never(); }
  /// Where each can be reached; empty: it does not listen yet.
  std::vector<std::string> urls() const;
  int listening() const;
  bool all_listen() const { return listening() == count(); }
  /// The node of one; empty: it does not listen yet.
  const std::string &host(int index) const { return server(index).host; }
  /// Also while it is being started again.
  bool running(int index) const { return !server(index).end; }
  /// Has died, and is not there again yet.
  bool is_away(int index) const { return server(index).is_away; }
  /// How those ended, one after the other, in whose place one was started again: "was killed by signal 9 (Killed)".
  const std::vector<std::string> &deaths(int index) const { return server(index).deaths; }
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
  /// SIGKILL to a server that runs, and to its process group. It is not started again.
  virtual void kill(int index) = 0;
  void kill_all();

 protected:
  struct Server {
    pid_t pid = -1;
    std::string url = {}, host = {};
    std::optional<std::string> end = {};
    bool is_away = false;
    std::vector<std::string> deaths = {};
    int exit_code = 0;
  };
  const Server &server(int index) const { return servers_[static_cast<std::size_t>(index)]; }
  std::vector<Server> servers_;
};

/// Singletons on this node, each in a process group of its own, so that the terminal's Ctrl-C does not reach them. They
/// watch a pipe that closes when this process dies, however it dies; then they drain, clean up and exit by themselves.
/// One that dies, and has a log, is started again at the same URL, unless it dies too often.
class ChildServers final : public Servers {
 public:
  /// Starts them; does not wait until they listen. Kills those that were started if one cannot be. `folder` and
  /// `signals` are borrowed.
  static Result<std::unique_ptr<ChildServers>> start(ServerOptions options, const RunDirectory &folder,
                                                     const Signals &signals);
  /// Kills what still runs.
  ~ChildServers() override;

  void look() override;
  Deadline due() const override;
  void note_exit(pid_t pid, int wait_status) override;
  /// Takes note of all children of this process that have ended.
  void reap();
  /// Of one that has ended, as a shell says it.
  int exit_code(int index) const { return server(index).exit_code; }
  /// Of one that has died, also if it is being started again: as how_it_ended().
  const std::string &last_end(int place) const { return rests_[static_cast<std::size_t>(place)].how; }
  bool owns(pid_t pid) const override;
  void kill(int index) override;
  /// Has them finish what they have acknowledged, and end.
  void end();

 private:
  /// Of a server that has died.
  struct Rest {
    Restarts restarts;
    std::optional<Deadline> again = {};  ///< when it is to be started again
    Deadline late = Deadline::never();   ///< when it is to listen again, at the latest
    std::string how = {};                ///< it ended
    bool is_noted = false;               ///< before_restart() was called
    bool is_final = false;               ///< it was killed here
  };
  ChildServers(ServerOptions options, const RunDirectory &folder, const Signals &signals)
      : options_(std::move(options)),
        keeps_files_(cli::keeps_files(options_.durability)),
        folder_(folder),
        signals_(signals) {}
  Result<pid_t> start_one(std::size_t place) const;
  bool may_go_on(std::size_t place, int wait_status) const;
  void start_again(std::size_t place);
  int index(std::size_t place) const { return options_.first + static_cast<int>(place); }
  std::string file_of(std::size_t place, const char *suffix) const;
  std::string all_urls() const;

  const ServerOptions options_;
  const bool keeps_files_;  ///< whatever files say of themselves
  const RunDirectory &folder_;
  const Signals &signals_;
  std::vector<Rest> rests_;
  Fd servers_end_, life_line_;  ///< of the pipe that closes with this process
};

}  // namespace nessie::cli
