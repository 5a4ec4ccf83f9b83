// SPDX-License-Identifier: BSD-3-Clause
// nnti-multi-latency: half round trips of 8 bytes of several pairs of processes at once.
#include "many_leaders.hpp"
#include "timing.hpp"

namespace bench {
namespace {

constexpr std::uint64_t kMessageBytes = 8;

nessie::Status exchange_messages(Leader &leader, Lane &lane) {
  std::vector<std::byte> message(kMessageBytes, std::byte{1});
  lane.values[0] = typical_us(kRoundTrips, [&](bool) { leader.exchange(message, 1, 1); });
  return {};
}

double median_us(Board &board, int leaders) { return median_value(board, leaders, 0); }

Measurement measurement(const Waiting &waiting) {
  return {waiting.mode, waiting, kMessageBytes, 1, exchange_messages, median_us, {{"round-trip", "polling"}}};
}

}  // namespace

nessie::Status nnti_multi_latency(const Options &options, Report &report) {
  ManyLeaders workload{"half round trips",
                       options.once ? std::vector<int>{1, 2} : std::vector<int>{1, 2, 4, 8},
                       false,
                       "half_round_trip_us",
                       "us",
                       [](double round_trip_us, std::uint64_t) { return round_trip_us / 2; },
                       {measurement(kPolling), measurement(kDefaultWait)}};
  return run_many_leaders(options, options.repetitions(9, 3), workload, report);
}

}  // namespace bench
