// SPDX-License-Identifier: BSD-3-Clause
// What several pairs of processes do at once, ours, MPI's and UCX's. nnti-message-rate: messages of 8 bytes a second, a
// window of them before each answer, as in the OSU benchmarks. nnti-multi-latency: half round trips of 8 bytes.
// nnti-pairs: what they move together, by put and by get of memory that Nessie allocated. And nnti-clients: what many
// clients get from one server.
#include "many_leaders.hpp"
#include "page_aligned.hpp"
#include "timing.hpp"

namespace bench {
namespace {

constexpr std::uint64_t kMessageBytes = 8;
constexpr Metric kBandwidth{"bandwidth_MBps", "MB/s"};

/// Counts calls, after some to warm up.
template <class Call> nessie::Status count(Lane &lane, Call &&once) {
  tally_for(kWarmUp_s, once);
  lane.tally = tally_for(kTally_s, once);
  return {};
}

nessie::Status send_windows(Leader &leader, Lane &lane) {
  std::vector<std::byte> message(kMessageBytes, std::byte{1});
  return count(lane, [&](bool) { leader.exchange(message, kWindow, 1); });
}

nessie::Status exchange_messages(Leader &leader, Lane &lane) {
  std::vector<std::byte> message(kMessageBytes, std::byte{1});
  lane.us = typical_us(kRoundTrips, [&](bool) { leader.exchange(message, 1, 1); });
  return {};
}

double messages_per_s(Board &board, int leaders) { return kWindow * calls_per_s(board, leaders); }

Measurement windows(const Waiting &waiting) {
  return {waiting.mode, waiting, kMessageBytes, kWindow, send_windows, messages_per_s, {{"rate", "polling"}}};
}

Measurement round_trips(const Waiting &waiting) {
  return {waiting.mode, waiting, kMessageBytes, 1, exchange_messages, median_us, {{"round-trip", "polling"}}};
}

Measurement gets(std::uint64_t size) {
  auto lead = [size](Leader &leader, Lane &lane) {
    PageAligned<std::byte> memory(size, std::byte{1});
    return count(lane, [&](bool) { leader.get(leader.lent().mapped, memory); });
  };
  return {"get", kPolling, size, 1, lead, calls_per_s, {{"gets-per-s", "get"}}};
}

Measurement puts(std::uint64_t size) {
  auto lead = [size](Leader &leader, Lane &lane) {
    PageAligned<std::byte> memory(size, std::byte{1});
    return count(lane, [&](bool) { leader.put(leader.lent().mapped, memory); });
  };
  return {"put", kPolling, size, 1, lead, calls_per_s, {{"puts-per-s", "put"}, {"transfers-per-s", "send"}}};
}

std::vector<int> few_pairs(const Options &options) {
  return options.once ? std::vector{1, 2} : std::vector{1, 2, 4, 8};
}

std::vector<int> many_pairs(const Options &options) {
  if (options.once) return {1, 2};
  return options.quick ? std::vector{1, 2, 8, 24} : std::vector{1, 2, 4, 8, 16, 24};
}

}  // namespace

nessie::Status nnti_message_rate(const Options &options, Report &report) {
  ManyLeaders workload{"windows of messages", many_pairs(options), false,
                       {"rate_per_s", "1/s"}, as_measured,         {windows(kPolling), windows(kDefaultWait)}};
  return run_many_leaders(options, options.repetitions(9, 3), workload, report);
}

nessie::Status nnti_multi_latency(const Options &options, Report &report) {
  ManyLeaders workload{"half round trips",
                       few_pairs(options),
                       false,
                       {"half_round_trip_us", "us"},
                       half,
                       {round_trips(kPolling), round_trips(kDefaultWait)}};
  return run_many_leaders(options, options.repetitions(9, 3), workload, report);
}

nessie::Status nnti_pairs(const Options &options, Report &report) {
  ManyLeaders workload{"put and get", few_pairs(options), false,
                       kBandwidth,    megabytes_counted,  {puts(64 << 10), gets(64 << 10)}};
  if (!options.once)
    for (const auto &measurement : {puts(1 << 20), gets(1 << 20)}) workload.measurements.push_back(measurement);
  return run_many_leaders(options, options.repetitions(9, 2), workload, report);
}

nessie::Status nnti_clients(const Options &options, Report &report) {
  ManyLeaders workload{"gets", {1, options.once ? 4 : 64}, true, kBandwidth, megabytes_counted, {gets(1 << 20)}};
  return run_many_leaders(options, options.repetitions(9, 2), workload, report);
}

}  // namespace bench
