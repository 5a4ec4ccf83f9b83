// SPDX-License-Identifier: BSD-3-Clause
#include "service_team.hpp"

#include "machine.hpp"

#include <optional>
#include <thread>

namespace bench {
namespace {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;

constexpr auto kTeamLimit = std::chrono::seconds(300), kSilence = std::chrono::seconds(30);
constexpr auto kGlance = std::chrono::milliseconds(20);

Status visit_once(const Options &options, const ServiceTeam &team, Board &board, int member, const Visit &visit) {
  auto runtime = open_runtime(options, team.waiting, false);
  if (!runtime) return runtime.error();
  const auto url = board.address_of(team.clients);
  if (url.empty()) return Error{Code::kPeerLost, "the service of the workload did not start"};
  auto peer = (*runtime)->connect(url, Deadline::in(kSilence));
  if (!peer) return peer.error();
  if (!board.meet(team.clients, 1)) return Error{Code::kTimedOut, "not all clients of the workload came"};
  return visit({**runtime, *peer, url}, board.lane(member));
}

}  // namespace

Result<std::unique_ptr<nssi::Runtime>> open_runtime(const Options &options, const RpcWaiting &waiting, bool listen) {
  nssi::RuntimeOptions runtime;
  runtime.endpoint = options.endpoint(listen, waiting.spin_us);
  return nssi::Runtime::open(std::move(runtime));
}

/// A client comes to a first meeting before it measures, and to a second one when it has left.
Status serve(const Options &options, const ServiceTeam &team, Board &board, const Offer &offer) {
  auto runtime = open_runtime(options, team.waiting, true);
  if (!runtime) return runtime.error();
  if (auto status = offer(**runtime); !status.ok()) return status;
  board.publish_address(team.clients, (*runtime)->url());
  std::thread watcher([&] {
    while (!board.stopped() && !board.all_here(team.clients, 2)) std::this_thread::sleep_for(kGlance);
    (*runtime)->stop();
  });
  (*runtime)->run();
  watcher.join();
  return {};
}

Result<std::unique_ptr<Board>> run_service_team(const Options &options, const ServiceTeam &team, const Host &host,
                                                const Visit &visit) {
  return run_crew(team.clients + 1, housing_for(options.transport), kTeamLimit,
                  [&](Board &board, int member) -> Status {
                    std::optional<Pin> pin;
                    if (team.bound) pin.emplace(member == team.clients ? kCoreOfService : core_of_client(member));
                    if (member == team.clients) return host(board);
                    auto status = visit_once(options, team, board, member, visit);
                    board.arrive();
                    return status;
                  });
}

}  // namespace bench
