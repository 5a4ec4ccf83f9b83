// SPDX-License-Identifier: BSD-3-Clause
// What a run knows of the staging servers that a launcher has started for it.
#pragma once

#include <launch_rpc.hpp>
#include <nessie/provider.hpp>

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace launch {

/// A server as its agent tells of it.
struct State {
  std::string url;                                      ///< empty: it has not joined yet
  std::string host;                                     ///< where it is
  unsigned agent = 0;                                   ///< the process that has joined for it
  bool mpi_has_begun = false;                           ///< in the program's job, of which its agent stands for a rank
  bool mpi_is_over = false;                             ///< there; or that rank is gone
  bool is_lost = false;                                 ///< its agent is gone, with its node perhaps
  std::vector<std::shared_ptr<const ending>> restarts;  ///< of those that died, and were started again
  std::size_t returns = 0;                              ///< how many of these are there again
  std::shared_ptr<const ending> its_end;  ///< null: it runs. A ledger may be long: all who look have the same
};

class Server final : public nessie::Provider, private LAUNCH::ONE::Server {
 public:
  /// Waits for `servers` agents. `changed` is called after each change, on the thread that drives. kExists: the
  /// provider's number is taken.
  static nessie::Result<std::unique_ptr<Server>> start(const nessie::ProviderContext &context, std::size_t servers,
                                                       std::function<void()> changed);
  /// All servers, by index. Any thread.
  std::vector<State> states() const;
  /// Has the agent kill its server. Nothing if it has not joined, or has ended. Any thread.
  void kill(std::size_t index);
  /// The programs that ask where the servers are hear that there will be none. Any thread.
  void give_up(const std::string &why);

  std::string describe() const override;
  void peer_lost(nssi::PeerId peer) override;
  void quiesce() override;

 private:
  struct Place {
    State state;
    std::optional<nssi::PeerId> peer;     ///< its agent
    nssi::Event *to_be_killed = nullptr;  ///< what its JOIN waits for
  };
  Server(const nessie::ProviderContext &context, std::size_t servers, std::function<void()> changed);
  nssi::Outcome<void> JOIN(nssi::Request &request, const server &joining) override;
  nssi::Outcome<servers> SERVERS(nssi::Request &request) override;
  nssi::Outcome<void> MPI_IS(nssi::Request &request, std::uint32_t index, const stage &now) override;
  nssi::Outcome<void> ENDED(nssi::Request &request, const ending &end) override;
  nssi::Outcome<void> RESTARTED(nssi::Request &request, const ending &end) override;
  nssi::Outcome<void> IS_BACK(nssi::Request &request, std::uint32_t index) override;
  nessie::Status take_place(const server &joining, nssi::PeerId peer, nssi::Event &to_be_killed);
  nessie::Status check(std::size_t index) const;
  std::optional<nssi::Outcome<servers>> answer() const;
  void tell_waiting();

  nssi::Runtime &runtime_;
  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::vector<Place> places_;
  std::optional<std::string> why_not_;
  bool is_over_ = false;
  std::list<nssi::Event *> waiting_;  ///< of those who ask where the servers are
};

}  // namespace launch
