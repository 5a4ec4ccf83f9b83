// SPDX-License-Identifier: BSD-3-Clause
// When turns without an event leave the waiting to the endpoint.
#pragma once

#include <nnti/nnti.hpp>

#include <base/clock.hpp>
#include <base/thread.hpp>

namespace nssi {

/// Tells when to leave the waiting to the endpoint, which knows when cores are short, but begins by reading clocks:
/// once turns without an event have taken some microseconds; on a full node after a few of them. One takes ten
/// nanoseconds, or a system call for each peer.
class Idleness {
 public:
  explicit Idleness(const nnti::Endpoint &endpoint) : endpoint_(endpoint) {}
  /// After each turn. True: nothing has happened for long. Who is waited for may have a thread of the same physical
  /// core, and is faster if this one relaxes; on others, the line that is polled comes sooner.
  bool is_long_after(bool busy) {
    if (busy) turns_ = 0;
    if (busy || turns_ == kLong) return !busy;
    nessie::relax();
    if (++turns_ == kFirst) begin();
    if (turns_ > kFirst && is_power_of_two(turns_) && nessie::Clock::now() - began_ > kMost) turns_ = kLong;
    return turns_ == kLong;
  }

 private:
  static constexpr unsigned kFirst = 8, kLong = 256;
  static constexpr auto kMost = std::chrono::microseconds(20);
  /// std::has_single_bit() is a call where the processor is not known to count bits.
  static bool is_power_of_two(unsigned n) { return (n & (n - 1)) == 0; }
  void begin() {
    began_ = nessie::Clock::now();
    if (endpoint_.is_crowded()) turns_ = kLong;
  }

  const nnti::Endpoint &endpoint_;
  unsigned turns_ = 0;
  nessie::Clock::time_point began_;  ///< of those after the first
};

}  // namespace nssi
