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

/// Calls `once` in ten batches, after one to warm up; returns the median of the batches' means, in microseconds.
template <class Call> double typical_us(int calls_per_batch, Call &&once) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> means;
  for (int batch = 0; batch <= kBatches; ++batch) {
    auto began = Clock::now();
    for (int call = 0; call < calls_per_batch; ++call) once();
    if (batch > 0)
      means.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count() / calls_per_batch);
  }
  return summarise(std::move(means)).median;
}

/// Calls `once` a number of times, each after a pause in which the partner falls asleep; returns the median, in
/// microseconds.
template <class Call> double paced_us(int calls, Call &&once) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kPause(200);
  std::vector<double> times;
  for (int call = 0; call < calls; ++call) {
    std::this_thread::sleep_for(kPause);
    auto began = Clock::now();
    once();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
  }
  return summarise(std::move(times)).median;
}

/// How many transfers of a size make a batch: enough to be timed, few enough to be quick.
inline int transfers_per_batch(std::uint64_t size_bytes) {
  constexpr std::uint64_t kBatchBytes = 64ull << 20;
  return static_cast<int>(std::clamp<std::uint64_t>(kBatchBytes / size_bytes, 1, 2000));
}

inline double megabytes_per_s(std::uint64_t size_bytes, double us) { return static_cast<double>(size_bytes) / us; }

}  // namespace bench
