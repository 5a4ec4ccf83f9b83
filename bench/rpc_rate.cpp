// SPDX-License-Identifier: BSD-3-Clause
// rpc-rate: how many empty calls a second one client makes with several of them in flight, and how many several clients
// make together; beside gRPC and libtirpc.
#include "comparison.hpp"
#include "rpc_team.hpp"
#include "timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace bench {
namespace {

using nessie::Status;

constexpr int kInFlight = 16;  ///< from each of several clients

/// Who calls: clients, or threads of one. A point of the figures.
struct Load {
  int clients, in_flight;
};

std::vector<Load> loads_for(const Options &options) {
  if (options.once) return {{1, kInFlight}, {2, kInFlight}};
  if (options.quick) return {{1, 1}, {1, 4}, {1, kInFlight}, {1, 64}, {2, kInFlight}, {4, kInFlight}, {16, kInFlight}};
  std::vector<Load> loads;
  for (int in_flight : {1, 2, 4, 8, 16, 32, 64}) loads.push_back({1, in_flight});
  for (int clients : {2, 4, 8, 16}) loads.push_back({clients, kInFlight});
  return loads;
}

/// Whether each process has a core to keep to; the clients are threads of one process.
enum class Place { kBound, kUnbound, kThreads };

/// How ours are called, and who runs the handler.
struct Manner {
  RpcWaiting waiting;
  Procedure procedure;
  std::string mode;
  Place place = Place::kBound;
  bool takes(const Load &load) const { return place == Place::kBound || load.in_flight == kInFlight; }
};
const std::vector<Manner> &manners() {
  static const std::vector<Manner> all{{kRpcPolling, Bench::NOTHING_SHORT, "polling-short"},
                                       {kRpcPolling, Bench::NOTHING, "polling"},
                                       {kRpcDefault, Bench::NOTHING_SHORT, "default-short"},
                                       {kRpcDefault, Bench::NOTHING, "default"},
                                       {kRpcDefault, Bench::NOTHING_SHORT, "default-short-unbound", Place::kUnbound},
                                       {kRpcDefault, Bench::NOTHING, "default-unbound", Place::kUnbound},
                                       {kRpcDefault, Bench::NOTHING_SHORT, "default-short-threads", Place::kThreads},
                                       {kRpcDefault, Bench::NOTHING, "default-threads", Place::kThreads}};
  return all;
}

/// As in the report: "polling-16", with so many in flight.
std::string mode_of(const std::string &manner, const Load &load) {
  return fmt::format("{}-{}", manner, load.in_flight);
}

/// Waits for the calls in the order in which they were made, and makes each anew.
Tally keep_calling(RpcClient &client, Procedure procedure, std::span<RpcClient::Call> calls, double seconds) {
  auto tally = tally_for(seconds, [&](bool) {
    for (auto &call : calls) {
      client.wait(call);
      call = client.start(procedure);
    }
  });
  tally.calls *= static_cast<double>(calls.size());
  return tally;
}

Status lead(RpcClient &client, Lane &lane, Procedure procedure, int in_flight) {
  std::vector<RpcClient::Call> calls;
  for (int i = 0; i < in_flight; ++i) calls.push_back(client.start(procedure));
  keep_calling(client, procedure, calls, kWarmUp_s);
  lane.tally = keep_calling(client, procedure, calls, kTally_s);
  for (auto &call : calls) client.wait(call);
  return {};
}

/// Several threads, each with calls of its own, counted together.
Status lead_threads(const RpcClient &client, Lane &lane, Procedure procedure, const Load &load) {
  const auto count = static_cast<std::size_t>(load.clients);
  std::vector<Lane> lanes(count);
  std::vector<Status> statuses(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      auto own = client;
      statuses[i] = lead(own, lanes[i], procedure, load.in_flight);
      if (statuses[i].ok()) statuses[i] = own.status();
    });
  for (auto &thread : threads) thread.join();
  lane.tally = lanes[0].tally;
  for (std::size_t i = 1; i < count; ++i) lane.tally = together(lane.tally, lanes[i].tally);
  const auto failed = std::ranges::find_if(statuses, [](const Status &status) { return !status.ok(); });
  return failed == statuses.end() ? Status() : *failed;
}

/// How a rival is asked, and the mode under which it is reported.
struct Way {
  const char *question, *suffix;
};
constexpr Way kWays[] = {{"calls-per-s", ""}, {"batched-per-s", "-batched"}};

class Rate final : public Comparison {
 public:
  Rate(const Options &options, Report &report)
      : Comparison(options, report, {"rate_per_s", "1/s"}), loads_(loads_for(options)) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Status measure_ours(const Manner &manner, const Load &load);
  Status ask_rival(const Rival &rival, const RpcWaiting &waiting, int clients);
  Series our_series(const Manner &manner, const Load &load) const {
    return ours(mode_of(manner.mode, load), 0, load.clients);
  }
  Series their_series(const Rival &rival, const Way &way, const RpcWaiting &waiting, const Load &load) const {
    auto series = theirs(rival, mode_of(waiting.mode, load), 0, load.clients);
    series.mode += way.suffix;
    return series;
  }
  Load best(const Manner &manner) const;

  std::vector<Rival> rivals_ = rpc_rivals_here();
  std::vector<Load> loads_;
};

Status Rate::measure_ours(const Manner &manner, const Load &load) {
  const bool are_threads = manner.place == Place::kThreads;
  const ServiceTeam team{
      .clients = are_threads ? 1 : load.clients, .waiting = manner.waiting, .bound = manner.place == Place::kBound};
  auto board = run_rpc_team(options_, team, [&](RpcClient &client, Lane &lane) {
    return are_threads ? lead_threads(client, lane, manner.procedure, load)
                       : lead(client, lane, manner.procedure, load.in_flight);
  });
  if (!board) return board.error();
  add(our_series(manner, load), calls_per_s(**board, team.clients));
  return {};
}

Status Rate::ask_rival(const Rival &rival, const RpcWaiting &waiting, int clients) {
  const Cast cast{.leaders = clients, .one_target = true, .polls = waiting.mode == kRpcPolling.mode};
  std::vector<std::uint64_t> in_flight;
  for (const auto &load : loads_)
    if (load.clients == clients) in_flight.push_back(static_cast<std::uint64_t>(load.in_flight));
  for (const auto &way : kWays) {
    if (!can_answer(rival.library, way.question)) continue;
    auto answers = bench::ask(rival, cast, {{way.question, in_flight}});
    if (!answers) return answers.error();
    for (auto [calls, rate] : (*answers)[way.question])
      add(their_series(rival, way, waiting, {clients, static_cast<int>(calls)}), rate);
  }
  return {};
}

Status Rate::measure() {
  int clients = 0;
  for (const auto &load : loads_) {
    for (const auto &manner : manners())
      if (manner.takes(load))
        if (auto status = measure_ours(manner, load); !status.ok()) return status;
    if (load.clients == clients) continue;
    clients = load.clients;
    for (const auto &waiting : {kRpcPolling, kRpcDefault})
      for (const auto &rival : rivals_)
        if (auto status = ask_rival(rival, waiting, clients); !status.ok()) return status;
  }
  return {};
}

/// Of those with 16 in flight from each client: whose calls were most, together.
Load Rate::best(const Manner &manner) const {
  std::vector<Load> many;
  for (const auto &load : loads_)
    if (load.in_flight == kInFlight) many.push_back(load);
  return *std::max_element(many.begin(), many.end(), [&](const Load &a, const Load &b) {
    return report_.median(our_series(manner, a)) < report_.median(our_series(manner, b));
  });
}

void Rate::add_ratios() {
  for (const auto &manner : manners()) {
    const auto most = best(manner);
    for (const auto &load : loads_) {
      for (const auto &rival : rivals_)
        for (const auto &way : kWays)
          if (manner.place == Place::kBound)
            compare(our_series(manner, load), their_series(rival, way, manner.waiting, load));
      if (load.in_flight == kInFlight) compare(our_series(manner, load), our_series(manner, most));
    }
    report_.note(fmt::format("{}: nessie/nessie is against {} clients, which made the most calls together.",
                             manner.mode, most.clients));
  }
}

}  // namespace

Status rpc_rate(const Options &options, Report &report) {
  return Rate(options, report).run_on_fit_cores(options.repetitions(9, 2), "calls in flight");
}

}  // namespace bench
