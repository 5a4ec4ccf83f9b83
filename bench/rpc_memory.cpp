// SPDX-License-Identifier: BSD-3-Clause
// rpc-memory: what a client costs the service that it calls: how much the service's process grows by 1 to 1000 clients
// that are connected, that have made a call, and that have had several in flight. They are idle when it is looked at.
#include "comparison.hpp"
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
constexpr const char *kConnected = "connected", *kCalled = "called", *kCalledOften = "called-16";
constexpr const char *kLooks[] = {kConnected, kCalled, kCalledOften};

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
  auto client = std::make_unique<RpcClient>(Connection{**runtime, *service, url});
  return Guest{*std::move(runtime), std::move(client)};
}

class Memory final : public Comparison {
 public:
  Memory(const Options &options, Report &report) : Comparison(options, report, {"memory_bytes", "B"}) {
    if (!options.once) counts_ = {1, 10, 100, 1000};
  }

 private:
  Status measure() override {
    for (int clients : counts_)
      if (auto status = measure(clients); !status.ok()) return status;
    return {};
  }
  void add_ratios() override {
    for (const char *look : kLooks) compare(ours(look, 0, counts_.back()), ours(look, 0, options_.once ? 1 : 10));
  }
  Status measure(int clients);
  Status visit(RpcClient &host, int clients, Lane &lane) const;

  std::vector<int> counts_{1, 10};
};

/// By way of one client more, who has called before: what only the first one costs is not theirs.
Status Memory::visit(RpcClient &host, int clients, Lane &lane) const {
  if (auto status = call_several(host, kInFlight); !status.ok()) return status;
  const auto before = host.memory_of_service();
  const auto look = [&](const char *when) { lane.leave(when, 0, (host.memory_of_service() - before) / clients); };
  std::vector<Guest> guests;
  for (int i = 0; i < clients; ++i) {
    auto guest = come(options_, host.url_of_service());
    if (!guest) return guest.error();
    guests.push_back(*std::move(guest));
  }
  look(kConnected);
  for (auto [in_flight, when] : {std::pair{1, kCalled}, {kInFlight, kCalledOften}}) {
    for (auto &guest : guests)
      if (auto status = call_several(*guest.client, in_flight); !status.ok()) return status;
    look(when);
  }
  return host.status();
}

Status Memory::measure(int clients) {
  const auto lead = [&](RpcClient &client, Lane &lane) { return visit(client, clients, lane); };
  return add(run_rpc_team(options_, {.waiting = kRpcDefault}, lead), clients);
}

}  // namespace

Status rpc_memory(const Options &options, Report &report) {
  if (auto status = check_forked(options.transport); !status.ok()) return status;
  allow_many_descriptors();
  return Memory(options, report).run(options.repetitions(3, 1), "memory of clients");
}

}  // namespace bench
