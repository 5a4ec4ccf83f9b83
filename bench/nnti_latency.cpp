// SPDX-License-Identifier: BSD-3-Clause
// nnti-latency: how long a message takes between two endpoints, and a put and a get of 8 bytes. Polling, beside MPI,
// UCX, a TCP socket and a bare cache line; blocking, beside a TCP socket, eventfd and futex.
#include "machine.hpp"
#include "nnti_team.hpp"
#include "options.hpp"
#include "repeat.hpp"
#include "rivals.hpp"
#include "sockets.hpp"
#include "timing.hpp"
#include "tools.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench {
namespace {

using nessie::Status;

constexpr std::uint64_t kWord = 8, kCacheLine = 64;
const std::vector<std::uint64_t> kSizesOfTools{kWord, 4096};  // each starts two processes
constexpr const char *kMessage = "half_round_trip_us", *kTransfer = "round_trip_us";

Series series(std::string system, std::string transport, std::string mode, std::uint64_t size) {
  const char *metric = mode == "put" || mode == "get" ? kTransfer : kMessage;
  return {std::move(system), std::move(transport), std::move(mode), size, 1, metric, "us"};
}

class Latency {
 public:
  Latency(const Options &options, Report &report)
      : options_(options),
        report_(report),
        network_(network_of(options.transport)),
        rivals_(rivals_here()),
        tools_(tools_here()) {
    sizes_ = options.once ? std::vector<std::uint64_t>{kWord, 4096} : std::vector<std::uint64_t>{};
    for (std::uint64_t size = kWord; !options.once && size <= 8192; size *= 2) sizes_.push_back(size);
  }
  Status measure(int repetition);
  void add_ratios();

 private:
  Status ours(const Waiting &waiting);
  Status lead(Leader &leader, Lane &lane, const Waiting &waiting);
  Status rivals();
  Status tools();
  Status kernel(SocketWait wait);
  Status wake_ups();
  void add(const char *system, const char *transport, const char *mode, std::uint64_t size, double us) {
    report_.add(series(system, transport, mode, size), repetition_, us);
  }

  const Options &options_;
  Report &report_;
  Network network_;
  std::vector<Rival> rivals_;
  std::vector<Tool> tools_;
  std::vector<std::uint64_t> sizes_;
  int repetition_ = 0;
};

/// Leaves half round trips by size, then put and get; 0: the transport takes no message of that size.
Status Latency::lead(Leader &leader, Lane &lane, const Waiting &waiting) {
  std::size_t next = 0;
  auto largest = leader.endpoint().max_message_bytes(leader.follower());
  for (auto size : sizes_) {
    std::vector<std::byte> message(size, std::byte{1});
    auto once = [&](bool) { leader.exchange(message, 1, 1); };
    if (size <= largest)
      lane.values[next] = (waiting.polls ? typical_us(kRoundTrips, once) : paced_us(kPacedCalls, once)) / 2;
    ++next;
  }
  if (!waiting.polls) return {};
  std::vector<std::byte> word(kWord, std::byte{2});
  int calls = transfers_per_batch(kWord);
  lane.values[next++] = typical_us(calls, [&](bool) { leader.put(leader.lent().mapped, word); });
  lane.values[next] = typical_us(calls, [&](bool) { leader.get(leader.lent().mapped, word); });
  return {};
}

Status Latency::ours(const Waiting &waiting) {
  Team team;
  team.waiting = waiting;
  auto board = board_for(team);
  auto status =
      run_team(options_, team, *board, [&](Leader &leader, Lane &lane) { return lead(leader, lane, waiting); });
  if (!status.ok()) return status;
  const auto *value = board->lane(0).values.data();
  auto add_next = [&](const char *mode, std::uint64_t size) {
    if (*value > 0) add("nessie", options_.transport.c_str(), mode, size, *value);
    ++value;
  };
  for (auto size : sizes_) add_next(waiting.mode, size);
  for (const char *mode : {"put", "get"}) add_next(mode, kWord);
  return {};
}

Status Latency::rivals() {
  for (auto rival : rivals_) {
    auto answers = ask(rival, {network_}, {{"round-trip", sizes_}, {"put", {kWord}}, {"get", {kWord}}});
    if (!answers) return answers.error();
    const auto *name = name_of(rival), *network = name_of(network_);
    for (auto [size, us] : (*answers)["round-trip"]) add(name, network, kPolling.mode, size, us / 2);
    for (const char *mode : {"put", "get"}) add(name, network, mode, kWord, (*answers)[mode][kWord]);
  }
  return {};
}

Status Latency::tools() {
  for (auto tool : tools_) {
    auto times = half_round_trips(tool, network_, kSizesOfTools);
    if (!times) return times.error();
    for (auto [size, us] : *times) add(name_of(tool), name_of(network_), kPolling.mode, size, us);
  }
  return {};
}

Status Latency::kernel(SocketWait wait) {
  auto times = socket_round_trips(SocketKind::kTcpLoopback, wait, sizes_);
  if (!times) return times.error();
  const auto *mode = wait == SocketWait::kPolls ? kPolling.mode : kBlocking.mode;
  for (auto [size, us] : *times) add("socket", "tcp", mode, size, us / 2);
  return {};
}

Status Latency::wake_ups() {
  auto by_eventfd = wake_up_round_trip(WakeUp::kEventfd), by_futex = wake_up_round_trip(WakeUp::kFutex);
  if (!by_eventfd || !by_futex) return by_eventfd ? by_futex.error() : by_eventfd.error();
  add("eventfd", "kernel", kBlocking.mode, kWord, *by_eventfd / 2);
  add("futex", "kernel", kBlocking.mode, kWord, *by_futex / 2);
  return {};
}

Status Latency::measure(int repetition) {
  repetition_ = repetition;
  if (double us = cache_line_us(); us > 0) add("cacheline", "memory", kPolling.mode, kCacheLine, us);
  auto status = ours(kPolling);
  if (status.ok()) status = rivals();
  if (status.ok()) status = tools();
  if (status.ok()) status = kernel(SocketWait::kPolls);
  if (status.ok()) status = ours(kBlocking);
  if (status.ok()) status = kernel(SocketWait::kSleeps);
  if (status.ok()) status = wake_ups();
  return status;
}

void Latency::add_ratios() {
  auto nessie = [&](const char *mode, std::uint64_t size) { return series("nessie", options_.transport, mode, size); };
  auto with = [&](const char *mode, std::uint64_t size, const char *system, const char *transport) {
    report_.add_ratio(nessie(mode, size), series(system, transport, mode, size));
  };
  for (auto size : sizes_) {
    for (auto rival : rivals_) with(kPolling.mode, size, name_of(rival), name_of(network_));
    for (auto tool : tools_) with(kPolling.mode, size, name_of(tool), name_of(network_));
    for (const char *mode : {kPolling.mode, kBlocking.mode}) with(mode, size, "socket", "tcp");
  }
  report_.add_ratio(nessie(kPolling.mode, kCacheLine), series("cacheline", "memory", kPolling.mode, kCacheLine));
  for (const char *mode : {"put", "get"})
    for (auto rival : rivals_) with(mode, kWord, name_of(rival), name_of(network_));
  for (const char *system : {"eventfd", "futex"}) with(kBlocking.mode, kWord, system, "kernel");
}

}  // namespace

Status nnti_latency(const Options &options, Report &report) {
  Latency latency(options, report);
  return compare_on_fit_cores(options.repetitions(15, 5), report, "half round trips", latency);
}

}  // namespace bench
