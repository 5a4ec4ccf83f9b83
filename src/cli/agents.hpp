// SPDX-License-Identifier: BSD-3-Clause
// Staging servers that a launcher starts, on other nodes or as ranks of the program's own job: beside each is an agent
// (agent.hpp), which tells this process of it by the launch service.
#pragma once

#include "servers.hpp"

#include <base/config.hpp>
#include <base/fd.hpp>
#include <services/launch/server/server.hpp>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace nessie::service {
class Host;
}

namespace nessie::cli {

struct AgentServersOptions {
  Config config;
  std::vector<std::string> transports;  ///< by which agents and programs reach this process; empty: all
  std::string credential;
  int count = 1;
  std::string run_directory;                  ///< where the ledgers of servers that were killed go
  std::string board_directory;                ///< where their boards go, unless they are there
  std::function<void(int index)> on_restart;  ///< as ServerOptions::before_restart
};

class AgentServers final : public Servers {
 public:
  /// Waits for agents from now on, on a thread of its own. Errors as nssi::Runtime::open().
  static Result<std::unique_ptr<AgentServers>> open(AgentServersOptions options);
  /// Ends what was launched, and tells agents that are left that the run is over.
  ~AgentServers() override;

  /// For NESSIE_SERVERS: where programs ask for the servers.
  std::string place() const;
  /// Where agents find this process.
  const std::string &url() const;
  /// Starts a launcher that starts the agents, and nothing else. Errors as spawn().
  Status launch(SpawnOptions launcher, const Signals &signals);
  /// Can be read from when look() will find something new.
  int fd() const { return changed_.get(); }
  /// Programs that wait for the servers hear that not all will come.
  void give_up(const std::string &why) { run_->give_up(why); }

  /// Whether the program's job, of which the servers are a part, has initialised MPI, as all of its processes must.
  bool has_program_begun() const { return has_program_begun_; }

  void look() override;
  std::string why_not_all() const override;
  bool is_program_over() const override;
  bool is_left_alone(int index) const override;
  void note_exit(pid_t pid, int wait_status) override;
  bool owns(pid_t pid) const override;
  void kill(int index) override { run_->kill(static_cast<std::size_t>(index)); }

 private:
  explicit AgentServers(AgentServersOptions options);
  Status serve();
  void end_launcher() const;
  void keep_traces(const launch::ending &end) const;
  std::string ledger_of(unsigned index) const;
  std::string board_of(unsigned index) const;
  void note_restart(std::size_t place, const launch::ending &end);

  const AgentServersOptions options_;
  Fd changed_;
  std::unique_ptr<service::Host> host_;
  launch::Server *run_ = nullptr;
  std::thread thread_;
  std::vector<pid_t> agents_;  ///< on this host
  std::set<int> lost_agents_;  ///< their servers
  bool has_program_begun_ = false, is_program_over_ = false;
  pid_t launcher_ = -1;
  std::optional<std::string> launcher_end_;
};

}  // namespace nessie::cli
