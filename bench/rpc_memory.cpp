// SPDX-License-Identifier: BSD-3-Clause
// rpc-memory: what a client costs the service that it calls: how much the service's process grows by 1 to 1000 clients
// that are connected, that have made a call, and that have had several in flight. They are idle when it is looked at.
#include "machine.hpp"
#include "rpc_team.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace bench {
namespace {

using nessie::Deadline;
using nessie::Status;

constexpr auto kPatience = std::chrono::seconds(30);
constexpr int kInFlight = 16;
/// What the clients have done when the service is looked at.
constexpr const char *kLooks[] = {"connected", "called", "called-16"};

/// A client with a runtime, and so a connection, of its own.
struct Guest {
  std::unique_ptr<nssi::Runtime> runtime;
  std::unique_ptr<RpcClient> client;
};

Status call_several(RpcClient &client, int in_flight) {
  std::vector<RpcClient::Call> calls;
  for (int i = 0; i < in_flight; ++i) calls.push_back(client.start(Bench::NOTHING));
  for (auto &call : calls) client.wait(call);
  return client.status();
}

nessie::Result<Guest> come(const Options &options, const std::string &url) {
  auto runtime = open_runtime(options, kRpcDefault, false);
  if (!runtime) return runtime.error();
  auto service = (*runtime)->connect(url, Deadline::in(kPatience));
  if (!service) return service.error();
  auto client = std::make_unique<RpcClient>(**runtime, *service);
  return Guest{*std::move(runtime), std::move(client)};
}

class Memory {
 public:
  Memory(const Options &options, Report &report) : options_(options), report_(report) {}
  Status measure(int clients, int repetition);
  void add_ratios(int few, int many) {
    for (const char *look : kLooks) report_.add_ratio(series(look, many), series(look, few));
  }

 private:
  Status visit(RpcClient &host, const std::string &url, int clients, Lane &lane) const;
  Series series(const std::string &look, int clients) const {
    return {"nessie", options_.transport, look, 0, clients, "memory_bytes", "B"};
  }

  const Options &options_;
  Report &report_;
};

/// By way of one client more, who has called before: what only the first one costs is not theirs.
Status Memory::visit(RpcClient &host, const std::string &url, int clients, Lane &lane) const {
  if (auto status = call_several(host, kInFlight); !status.ok()) return status;
  const auto before = host.memory_of_service();
  auto *next = lane.values.data();
  const auto look = [&] { *next++ = (host.memory_of_service() - before) / clients; };
  std::vector<Guest> guests;
  for (int i = 0; i < clients; ++i) {
    auto guest = come(options_, url);
    if (!guest) return guest.error();
    guests.push_back(*std::move(guest));
  }
  look();
  for (int in_flight : {1, kInFlight}) {
    for (auto &guest : guests)
      if (auto status = call_several(*guest.client, in_flight); !status.ok()) return status;
    look();
  }
  return host.status();
}

Status Memory::measure(int clients, int repetition) {
  RpcTeam team;
  team.waiting = kRpcDefault;
  auto board = board_for(team);
  auto status = run_rpc_team(options_, team, *board, [&](RpcClient &client, Lane &lane) {
    return visit(client, board->address_of(team.clients), clients, lane);
  });
  if (!status.ok()) return status;
  const auto *value = board->lane(0).values.data();
  for (const char *look : kLooks) report_.add(series(look, clients), repetition, *value++);
  return {};
}

}  // namespace

Status rpc_memory(const Options &options, Report &report) {
  if (auto status = check_forked(options.transport); !status.ok()) return status;
  allow_many_descriptors();
  const auto counts = options.once ? std::vector{1, 10} : std::vector{1, 10, 100, 1000};
  const int repetitions = options.repetitions(3, 1);
  Memory memory(options, report);
  Progress progress(repetitions);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    progress.step("memory of clients");
    for (int clients : counts)
      if (auto status = memory.measure(clients, repetition); !status.ok()) return status;
  }
  memory.add_ratios(options.once ? counts.front() : 10, counts.back());
  return {};
}

}  // namespace bench
