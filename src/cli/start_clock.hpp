// SPDX-License-Identifier: BSD-3-Clause
// How long the servers of a run take to start, and may take.
#pragma once

#include <base/clock.hpp>

#include <chrono>

namespace nessie::cli {

class StartClock {
 public:
  /// Each server that has begun to listen gives the others as long again: many on few cores take long, all together.
  explicit StartClock(std::chrono::milliseconds patience) : patience_(patience) {}

  void note(int listening) {
    if (listening <= listening_) return;
    listening_ = listening;
    last_ = Clock::now();
    too_late_ = Deadline::in(patience_);
  }
  bool is_too_late() const { return too_late_.passed(); }
  std::chrono::milliseconds patience() const { return patience_; }
  /// Until the last of those that listen.
  double took_s() const { return std::chrono::duration<double>(last_ - begin_).count(); }
  double elapsed_s() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  const std::chrono::milliseconds patience_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
  Deadline too_late_ = Deadline::in(patience_);
  int listening_ = 0;
};

}  // namespace nessie::cli
