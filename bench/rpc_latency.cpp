// SPDX-License-Identifier: BSD-3-Clause
// rpc-latency: how long a request takes to its handler and its result back, between two processes on two cores. MPI's
// and UCX's ping-pong (polling), an echo through sockets and two bare wake-ups (sleeping) show what the machine allows;
// gRPC and libtirpc what others make of a call.
#include "comparison.hpp"
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

class Latency final : public Comparison {
 public:
  Latency(const Options &options, Report &report) : Comparison(options, report, {"round_trip_us", "us"}) {
    sizes_ = options.once ? std::vector<std::uint64_t>{0, 64} : std::vector<std::uint64_t>{0, 64, 256, 1024, 4096};
    for (auto size : sizes_) message_sizes_.push_back(message_size(size));
  }

 private:
  Status measure() override;
  void add_ratios() override;
  Status ours_waiting(const RpcWaiting &waiting);
  Status rpc_rivals(const RpcWaiting &waiting);
  Status socket(SocketWait wait);
  Status wake_ups();
  void add_ratios_of(const RpcWaiting &waiting, const Series &mine);
  SocketKind socket_kind() const { return network_ == Network::kTcp ? SocketKind::kTcpLoopback : SocketKind::kUnix; }
  const char *socket_name() const { return network_ == Network::kTcp ? "tcp" : "unix"; }

  std::vector<Rival> rivals_ = rivals_here(network_), rpc_rivals_ = rpc_rivals_here();
  std::vector<std::uint64_t> sizes_, message_sizes_;
};

double round_trip_us(RpcClient &client, const RpcWaiting &waiting, const Handling &handling, std::uint64_t size) {
  std::vector<std::byte> block(size);
  auto once = [&](bool) { size == 0 ? client.call(handling.nothing) : client.call(handling.echo, block); };
  return waiting.paced ? paced_us(kPacedCalls, once) : typical_us(kRoundTrips, once);
}

Status Latency::ours_waiting(const RpcWaiting &waiting) {
  return add(run_rpc_team(options_, {.waiting = waiting}, [&](RpcClient &client, Lane &lane) -> Status {
    for (const auto &handling : kHandlings)
      for (auto size : sizes_)
        lane.leave(mode_of(waiting, handling), size, round_trip_us(client, waiting, handling, size));
    return {};
  }));
}

Status Latency::rpc_rivals(const RpcWaiting &waiting) {
  return ask(rpc_rivals_, {.polls = waiting.mode == kRpcPolling.mode},
             {{waiting.paced ? "paced" : "round-trip", sizes_, waiting.mode}});
}

Status Latency::socket(SocketWait wait) {
  const char *mode = wait == SocketWait::kPolls ? kRpcPolling.mode : kRpcBlocking.mode;
  return add("socket", socket_name(), mode, socket_round_trips(socket_kind(), wait, message_sizes_));
}

Status Latency::wake_ups() {
  auto us = wake_up_round_trip(WakeUp::kEventfd);
  if (!us) return us.error();
  add(series("eventfd", "kernel", kRpcBlocking.mode, kWord), *us);
  return {};
}

Status Latency::measure() {
  auto status = ours_waiting(kRpcPolling);
  if (status.ok()) status = ask(rivals_, {}, {{"round-trip", message_sizes_, kRpcPolling.mode}});
  if (status.ok()) status = rpc_rivals(kRpcPolling);
  if (status.ok() && network_ == Network::kTcp) status = socket(SocketWait::kPolls);
  if (status.ok()) status = ours_waiting(kRpcDefault);
  if (status.ok()) status = rpc_rivals(kRpcDefault);
  if (status.ok()) status = ours_waiting(kRpcBlocking);
  if (status.ok()) status = socket(SocketWait::kSleeps);
  if (status.ok()) status = wake_ups();
  if (status.ok()) status = rpc_rivals(kRpcBlocking);
  return status;
}

void Latency::add_ratios_of(const RpcWaiting &waiting, const Series &mine) {
  const auto size = message_size(mine.size_bytes);
  const char *mode = waiting.paced ? kRpcBlocking.mode : kRpcPolling.mode;
  for (const auto &rival : rivals_) compare(mine, theirs(rival, mode, size));
  compare(mine, series("socket", socket_name(), mode, size));
  if (mine.size_bytes == 0) compare(mine, series("eventfd", "kernel", mode, size));
  for (const auto &rival : rpc_rivals_) compare(mine, theirs(rival, waiting.mode, mine.size_bytes));
}

void Latency::add_ratios() {
  for (auto size : sizes_)
    for (const auto &waiting : {kRpcPolling, kRpcDefault, kRpcBlocking})
      for (const auto &handling : kHandlings) add_ratios_of(waiting, ours(mode_of(waiting, handling), size));
}

}  // namespace

Status rpc_latency(const Options &options, Report &report) {
  return Latency(options, report).run_on_fit_cores(options.repetitions(15, 3), "round trips");
}

}  // namespace bench
