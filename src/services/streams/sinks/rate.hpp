// SPDX-License-Identifier: BSD-3-Clause
// No more than so many bytes a second.
#pragma once

#include "services/streams/sinks/step.hpp"

#include <base/clock.hpp>

#include <algorithm>
#include <thread>

namespace nessie::streams::sinks {

class Rate {
 public:
  /// 0: as fast as it goes.
  explicit Rate(std::uint64_t bytes_per_s) : bytes_per_s_(bytes_per_s) {}
  /// Waits until what went before has had its time; then so many bytes may go.
  void spend(std::size_t bytes, const Stop &stop) {
    if (bytes_per_s_ == 0) return;
    while (Clock::now() < free_at_ && !stop())
      std::this_thread::sleep_until(std::min(free_at_, Clock::now() + std::chrono::milliseconds(100)));
    const std::chrono::duration<double> takes(static_cast<double>(bytes) / static_cast<double>(bytes_per_s_));
    free_at_ = std::max(free_at_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
  }

 private:
  std::uint64_t bytes_per_s_;
  Clock::time_point free_at_{};
};

/// When to try again what fails as long as somebody else is not there: soon at first, then every second.
class Retry {
 public:
  explicit Retry(std::chrono::milliseconds patience) : until_(Deadline::in(patience)) {}
  /// False: it has been tried for long enough, or is to stop.
  bool wait(const Stop &stop) {
    const auto next = Deadline::in(pause_);
    pause_ = std::min(2 * pause_, std::chrono::milliseconds(1000));
    while (!next.passed() && !until_.passed() && !stop()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return !until_.passed() && !stop();
  }
  Deadline until() const { return until_; }

 private:
  Deadline until_;
  std::chrono::milliseconds pause_{20};
};

}  // namespace nessie::streams::sinks
