// SPDX-License-Identifier: BSD-3-Clause
// rpc-latency: how long a request takes to its handler and its result back, between two processes on two cores. MPI's
// and UCX's ping-pong (polling), an echo through sockets and two bare wake-ups (sleeping) show what the machine allows;
// gRPC and libtirpc what others make of a call.
#include "repeat.hpp"
#include "rivals.hpp"
#include "rpc_team.hpp"
#include "sockets.hpp"
#include "timing.hpp"

namespace bench {
namespace {

using nessie::Status;

constexpr std::uint64_t kWord = 8;
/// The no-op is set beside a message of 8 bytes.
std::uint64_t message_size(std::uint64_t size) { return size == 0 ? kWord : size; }

/// Who runs the handler. The short one is named in the mode.
struct Handling {
  const char *suffix;
  Procedure nothing, echo;
};
constexpr Handling kHandlings[] = {{"-short", Bench::NOTHING_SHORT, Bench::ECHO_SHORT},
                                   {"", Bench::NOTHING, Bench::ECHO}};

std::string mode_of(const RpcWaiting &waiting, const Handling &handling) {
  return std::string(waiting.mode) + handling.suffix;
}

Series series(std::string system, std::string transport, std::string mode, std::uint64_t size) {
  return {std::move(system), std::move(transport), std::move(mode), size, 1, "round_trip_us", "us"};
}

class Latency {
 public:
  Latency(const Options &options, Report &report)
      : options_(options),
        report_(report),
        network_(network_of(options.transport)),
        rivals_(rivals_here()),
        rpc_rivals_(rpc_rivals_here()) {
    sizes_ = options.once ? std::vector<std::uint64_t>{0, 64} : std::vector<std::uint64_t>{0, 64, 256, 1024, 4096};
    for (auto size : sizes_) message_sizes_.push_back(message_size(size));
  }
  Status measure(int repetition);
  void add_ratios();

 private:
  Status ours(const RpcWaiting &waiting);
  Status rivals();
  Status rpc_rivals(const RpcWaiting &waiting);
  Status socket(SocketWait wait);
  Status wake_ups();
  void add_ratios_of(const RpcWaiting &waiting, const Series &ours);
  void add(const std::string &system, const std::string &transport, const std::string &mode, std::uint64_t size,
           double us) {
    report_.add(series(system, transport, mode, size), repetition_, us);
  }
  SocketKind socket_kind() const { return network_ == Network::kTcp ? SocketKind::kTcpLoopback : SocketKind::kUnix; }
  const char *socket_name() const { return network_ == Network::kTcp ? "tcp" : "unix"; }

  const Options &options_;
  Report &report_;
  Network network_;
  std::vector<Rival> rivals_;
  std::vector<RpcRival> rpc_rivals_;
  std::vector<std::uint64_t> sizes_, message_sizes_;
  int repetition_ = 0;
};

double round_trip_us(RpcClient &client, const RpcWaiting &waiting, const Handling &handling, std::uint64_t size) {
  std::vector<std::byte> block(size);
  auto once = [&](bool) { size == 0 ? client.call(handling.nothing) : client.call(handling.echo, block); };
  return waiting.paced ? paced_us(kPacedCalls, once) : typical_us(kRoundTrips, once);
}

Status Latency::ours(const RpcWaiting &waiting) {
  RpcTeam team;
  team.waiting = waiting;
  auto board = board_for(team);
  auto status = run_rpc_team(options_, team, *board, [&](RpcClient &client, Lane &lane) -> Status {
    auto *next = lane.values.data();
    for (const auto &handling : kHandlings)
      for (auto size : sizes_) *next++ = round_trip_us(client, waiting, handling, size);
    return {};
  });
  if (!status.ok()) return status;
  const auto *value = board->lane(0).values.data();
  for (const auto &handling : kHandlings)
    for (auto size : sizes_) add("nessie", options_.transport, mode_of(waiting, handling), size, *value++);
  return {};
}

Status Latency::rivals() {
  for (auto rival : rivals_) {
    auto answers = ask(rival, {network_}, {{"round-trip", message_sizes_}});
    if (!answers) return answers.error();
    for (auto [size, us] : (*answers)["round-trip"]) add(name_of(rival), name_of(network_), kRpcPolling.mode, size, us);
  }
  return {};
}

Status Latency::rpc_rivals(const RpcWaiting &waiting) {
  const std::string what = waiting.paced ? "paced" : "round-trip";
  for (const auto &it : rpc_rivals_) {
    Cast cast{it.network};
    cast.polls = waiting.mode == kRpcPolling.mode;
    auto answers = ask(it.rival, cast, {{what, sizes_}});
    if (!answers) return answers.error();
    for (auto [size, us] : (*answers)[what])
      add(name_of(it.rival), name_of(it.network), it.mode(waiting.mode), size, us);
  }
  return {};
}

Status Latency::socket(SocketWait wait) {
  auto times = socket_round_trips(socket_kind(), wait, message_sizes_);
  if (!times) return times.error();
  const char *mode = wait == SocketWait::kPolls ? kRpcPolling.mode : kRpcBlocking.mode;
  for (auto [size, us] : *times) add("socket", socket_name(), mode, size, us);
  return {};
}

Status Latency::wake_ups() {
  auto us = wake_up_round_trip(WakeUp::kEventfd);
  if (!us) return us.error();
  add("eventfd", "kernel", kRpcBlocking.mode, kWord, *us);
  return {};
}

Status Latency::measure(int repetition) {
  repetition_ = repetition;
  auto status = ours(kRpcPolling);
  if (status.ok()) status = rivals();
  if (status.ok()) status = rpc_rivals(kRpcPolling);
  if (status.ok() && network_ == Network::kTcp) status = socket(SocketWait::kPolls);
  if (status.ok()) status = ours(kRpcDefault);
  if (status.ok()) status = rpc_rivals(kRpcDefault);
  if (status.ok()) status = ours(kRpcBlocking);
  if (status.ok()) status = socket(SocketWait::kSleeps);
  if (status.ok()) status = wake_ups();
  if (status.ok()) status = rpc_rivals(kRpcBlocking);
  return status;
}

void Latency::add_ratios_of(const RpcWaiting &waiting, const Series &ours) {
  const auto size = message_size(ours.size_bytes);
  const char *theirs = waiting.paced ? kRpcBlocking.mode : kRpcPolling.mode;
  for (auto rival : rivals_) report_.add_ratio(ours, series(name_of(rival), name_of(network_), theirs, size));
  report_.add_ratio(ours, series("socket", socket_name(), theirs, size));
  if (ours.size_bytes == 0) report_.add_ratio(ours, series("eventfd", "kernel", theirs, size));
  for (const auto &it : rpc_rivals_)
    report_.add_ratio(ours, series(name_of(it.rival), name_of(it.network), it.mode(waiting.mode), ours.size_bytes));
}

void Latency::add_ratios() {
  for (auto size : sizes_)
    for (const auto &waiting : {kRpcPolling, kRpcDefault, kRpcBlocking})
      for (const auto &handling : kHandlings)
        add_ratios_of(waiting, series("nessie", options_.transport, mode_of(waiting, handling), size));
}

}  // namespace

Status rpc_latency(const Options &options, Report &report) {
  Latency latency(options, report);
  return compare_on_fit_cores(options.repetitions(15, 3), report, "round trips", latency);
}

}  // namespace bench
