// SPDX-License-Identifier: BSD-3-Clause
// nnti-latency: how long a message takes between two endpoints, and a put and a get of 8 bytes. Polling, beside MPI,
// UCX, a TCP socket and a bare cache line; blocking, beside a TCP socket, eventfd and futex.
#include "comparison.hpp"
#include "machine.hpp"
#include "nnti_team.hpp"
#include "sockets.hpp"
#include "timing.hpp"
#include "tools.hpp"

namespace bench {
namespace {

using nessie::Status;

constexpr std::uint64_t kWord = 8, kCacheLine = 64;
const std::vector<std::uint64_t> kSizesOfTools{kWord, 4096};  // each starts two processes

class Latency final : public Comparison {
 public:
  Latency(const Options &options, Report &report)
      : Comparison(options, report, {"half_round_trip_us", "us"}),
        sizes_(sizes_between(kWord, options.once ? 4096 : 8192, options.once ? 512 : 2)) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Metric metric_of(const std::string &mode) const override {
    return {mode == "put" || mode == "get" ? "round_trip_us" : "half_round_trip_us", "us"};
  }
  Status ours_waiting(const Waiting &waiting);
  Status lead(Leader &leader, Lane &lane, const Waiting &waiting) const;
  Status tools();
  Status kernel(SocketWait wait);
  Status wake_ups();

  std::vector<Rival> rivals_ = rivals_here(network_);
  std::vector<Tool> tools_ = tools_here();
  std::vector<std::uint64_t> sizes_;
};

/// Without the sizes of which the transport takes no message.
Status Latency::lead(Leader &leader, Lane &lane, const Waiting &waiting) const {
  const auto largest = leader.endpoint().max_message_bytes(leader.follower());
  for (auto size : sizes_) {
    std::vector<std::byte> message(size, std::byte{1});
    auto once = [&](bool) { leader.exchange(message, 1, 1); };
    if (size <= largest)
      lane.leave(waiting.mode, size, (waiting.polls ? typical_us(kRoundTrips, once) : paced_us(kPacedCalls, once)) / 2);
  }
  if (!waiting.polls) return {};
  std::vector<std::byte> word(kWord, std::byte{2});
  const int calls = transfers_per_batch(kWord);
  lane.leave("put", kWord, typical_us(calls, [&](bool) { leader.put(leader.lent().mapped, word); }));
  lane.leave("get", kWord, typical_us(calls, [&](bool) { leader.get(leader.lent().mapped, word); }));
  return {};
}

Status Latency::ours_waiting(const Waiting &waiting) {
  return add(run_team(options_, {.waiting = waiting},
                      [&](Leader &leader, Lane &lane) { return lead(leader, lane, waiting); }));
}

Status Latency::tools() {
  for (auto tool : tools_) {
    auto status = add(name_of(tool), name_of(network_), kPolling.mode, half_round_trips(tool, network_, kSizesOfTools));
    if (!status.ok()) return status;
  }
  return {};
}

Status Latency::kernel(SocketWait wait) {
  const auto *mode = wait == SocketWait::kPolls ? kPolling.mode : kBlocking.mode;
  return add("socket", "tcp", mode, socket_round_trips(SocketKind::kTcpLoopback, wait, sizes_), half);
}

Status Latency::wake_ups() {
  auto by_eventfd = wake_up_round_trip(WakeUp::kEventfd), by_futex = wake_up_round_trip(WakeUp::kFutex);
  if (!by_eventfd || !by_futex) return by_eventfd ? by_futex.error() : by_eventfd.error();
  add(series("eventfd", "kernel", kBlocking.mode, kWord), *by_eventfd / 2);
  add(series("futex", "kernel", kBlocking.mode, kWord), *by_futex / 2);
  return {};
}

Status Latency::measure() {
  if (double us = cache_line_us(); us > 0) add(series("cacheline", "memory", kPolling.mode, kCacheLine), us);
  auto status = ours_waiting(kPolling);
  if (status.ok())
    status = ask(rivals_, {},
                 {{"round-trip", sizes_, kPolling.mode, half}, {"put", {kWord}, "put"}, {"get", {kWord}, "get"}});
  if (status.ok()) status = tools();
  if (status.ok()) status = kernel(SocketWait::kPolls);
  if (status.ok()) status = ours_waiting(kBlocking);
  if (status.ok()) status = kernel(SocketWait::kSleeps);
  if (status.ok()) status = wake_ups();
  return status;
}

void Latency::add_ratios() {
  for (auto size : sizes_) {
    const auto polling = ours(kPolling.mode, size), blocking = ours(kBlocking.mode, size);
    for (const auto &rival : rivals_) compare(polling, theirs(rival, kPolling.mode, size));
    for (auto tool : tools_) compare(polling, series(name_of(tool), name_of(network_), kPolling.mode, size));
    compare(polling, series("socket", "tcp", kPolling.mode, size));
    compare(blocking, series("socket", "tcp", kBlocking.mode, size));
  }
  compare(ours(kPolling.mode, kCacheLine), series("cacheline", "memory", kPolling.mode, kCacheLine));
  for (const char *mode : {"put", "get"})
    for (const auto &rival : rivals_) compare(ours(mode, kWord), theirs(rival, mode, kWord));
  for (const char *system : {"eventfd", "futex"})
    compare(ours(kBlocking.mode, kWord), series(system, "kernel", kBlocking.mode, kWord));
}

}  // namespace

Status nnti_latency(const Options &options, Report &report) {
  return Latency(options, report).run_on_fit_cores(options.repetitions(15, 5), "half round trips");
}

}  // namespace bench
