// SPDX-License-Identifier: BSD-3-Clause
// How long one call takes, when many are made.
#pragma once

#include "report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace bench {

inline constexpr int kBatches = 10;
inline constexpr int kPacedCalls = 200;  ///< of those that sleep between calls

/// The last byte of a message tells the other side whether it is the last one.
inline constexpr char kLast = '.', kAnother = '+';

/// Calls `once` in ten batches, after one to warm up; returns the median of the batches' means, in microseconds. Where
/// a batch of that many calls would take longer than a tenth of a second, it is shortened. The argument of `once` tells
/// whether it is the last call of all.
template <class Call> double typical_us(int calls_per_batch, Call &&once) {
  using Clock = std::chrono::steady_clock;
  auto warm_up_ends = Clock::now() + std::chrono::milliseconds(100);
  int calls = 0;
  do once(false);
  while (++calls < calls_per_batch && Clock::now() < warm_up_ends);
  std::vector<double> means;
  for (int batch = 1; batch <= kBatches; ++batch) {
    auto began = Clock::now();
    for (int call = 1; call <= calls; ++call) once(batch == kBatches && call == calls);
    means.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count() / calls);
  }
  return summarise(std::move(means)).median;
}

/// Calls `once`, with the same argument, a number of times, each after a pause in which the partner falls asleep;
/// returns the median, in microseconds.
template <class Call> double paced_us(int calls, Call &&once) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kPause(200);
  std::vector<double> times;
  for (int made = 0; made < calls;) {
    std::this_thread::sleep_for(kPause);
    auto began = Clock::now();
    once(++made == calls);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
  }
  return summarise(std::move(times)).median;
}

inline constexpr int kRoundTrips = 1000, kSocketRoundTrips = 200;  ///< in a batch

/// Message rates: so many messages are sent before an answer is awaited, as in the OSU benchmarks.
inline constexpr int kWindow = 64;

/// Seconds on the clock that all processes of this machine share.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What one process counted between two moments.
struct Tally {
  double began_s = 0, ended_s = 0, calls = 0;
};
/// Of both, from the first beginning to the last end.
inline Tally together(const Tally &a, const Tally &b) {
  return {std::min(a.began_s, b.began_s), std::max(a.ended_s, b.ended_s), a.calls + b.calls};
}
inline constexpr double kWarmUp_s = 0.02, kTally_s = 0.25;

/// Calls `once` until the time is over. Its argument tells whether it is the last call.
template <class Call> Tally tally_for(double seconds, Call &&once) {
  Tally tally;
  tally.began_s = now_s();
  for (bool last = false; !last; ++tally.calls) {
    last = now_s() - tally.began_s >= seconds;
    once(last);
  }
  tally.ended_s = now_s();
  return tally;
}
/// How many transfers of a size make a batch: enough to be timed, few enough to be quick.
inline int transfers_per_batch(std::uint64_t size_bytes) {
  constexpr std::uint64_t kBatchBytes = 64ull << 20;
  return static_cast<int>(std::clamp<std::uint64_t>(kBatchBytes / size_bytes, 1, 2000));
}

}  // namespace bench
