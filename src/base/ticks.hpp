// SPDX-License-Identifier: BSD-3-Clause
// Time for measurements: the processor's own counter, where it counts evenly whatever the processor does, and otherwise
// steady_clock. Half as expensive as that, or less.
#pragma once

#include <base/clock.hpp>

#include <cstdint>

namespace nessie {

class Ticks {
 public:
  /// Now. Of two threads' readings the later may be the smaller by some nanoseconds: see since().
  static std::uint64_t now() {
    if (!reads_counter_) return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    return counter();
  }
  /// From `start` to `end`; 0 if that is behind it.
  static std::uint64_t between(std::uint64_t start, std::uint64_t end) { return end > start ? end - start : 0; }
  static std::uint64_t since(std::uint64_t start) { return between(start, now()); }

  /// How long a tick is, from what both clocks have counted since the process began: the longer it runs, the more
  /// exactly. Waits in the process's first milliseconds.
  static double nanoseconds();
  /// Whether it is the processor's counter.
  static bool reads_counter() { return reads_counter_; }

 private:
  static std::uint64_t counter() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t count;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
  }
  static const bool reads_counter_;
};

}  // namespace nessie
