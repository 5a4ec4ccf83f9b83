// SPDX-License-Identifier: BSD-3-Clause
// nnti-message-rate: how many messages of 8 bytes a second one pair of processes moves, and several pairs at once. Each
// leader sends a window of messages, then waits for one answer, as in the OSU benchmarks; so do MPI's and UCX's.
#include "many_leaders.hpp"
#include "timing.hpp"

namespace bench {
namespace {

constexpr std::uint64_t kMessageBytes = 8;

nessie::Status send_windows(Leader &leader, Lane &lane) {
  std::vector<std::byte> message(kMessageBytes, std::byte{1});
  auto exchange = [&](bool) { leader.exchange(message, kWindow, 1); };
  tally_for(kWarmUp_s, exchange);
  lane.tally = tally_for(kTally_s, exchange);
  return {};
}

double messages_per_s(Board &board, int leaders) { return kWindow * calls_per_s(board, leaders); }

Measurement measurement(const Waiting &waiting) {
  return {waiting.mode, waiting, kMessageBytes, kWindow, send_windows, messages_per_s, {{"rate", "polling"}}};
}

std::vector<int> pairs_for(const Options &options) {
  if (options.once) return {1, 2};
  if (options.quick) return {1, 2, 8, 24};
  return {1, 2, 4, 8, 16, 24};
}

}  // namespace

nessie::Status nnti_message_rate(const Options &options, Report &report) {
  ManyLeaders workload{"windows of messages",
                       pairs_for(options),
                       false,
                       "rate_per_s",
                       "1/s",
                       [](double rate, std::uint64_t) { return rate; },
                       {measurement(kPolling), measurement(kDefaultWait)}};
  return run_many_leaders(options, options.repetitions(9, 3), workload, report);
}

}  // namespace bench
