// SPDX-License-Identifier: BSD-3-Clause
// Deadlines on the monotonic clock. Every wait in Nessie takes one.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace nessie {

using Clock = std::chrono::steady_clock;

/// Where time comes from. Tests put one in its place that goes as they please.
struct TimeSource {
  Clock::time_point (*now)() = &Clock::now;
  void (*sleep)(Clock::duration) = [](Clock::duration time) { std::this_thread::sleep_for(time); };
};

/// A point in time after which a wait gives up with kTimedOut.
class Deadline {
 public:
  static Deadline never() { return Deadline(Clock::time_point::max()); }
  static Deadline now() { return Deadline(Clock::time_point::min()); }
  static Deadline at(Clock::time_point when) { return Deadline(when); }
  static Deadline in(Clock::duration from_now) { return Deadline(Clock::now() + from_now); }
  /// The papers' convention: milliseconds; -1 for ever, 0 not at all.
  static Deadline from_ms(int timeout_ms) {
    if (timeout_ms < 0) return never();
    if (timeout_ms == 0) return now();
    return in(std::chrono::milliseconds(timeout_ms));
  }

  bool is_never() const { return when_ == Clock::time_point::max(); }
  bool passed() const { return when_ == Clock::time_point::min() || (!is_never() && Clock::now() >= when_); }
  Clock::time_point when() const { return when_; }
  Deadline earlier(Deadline other) const { return when_ < other.when_ ? *this : other; }
  /// When half of the time that is left has passed: for an attempt that leaves the other half to those after it.
  Deadline halfway() const { return is_never() || passed() ? *this : in((when_ - Clock::now()) / 2); }
  /// Milliseconds left for poll(2): -1 for ever; otherwise 0 to INT_MAX, rounded up.
  int poll_timeout_ms() const;

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace nessie
