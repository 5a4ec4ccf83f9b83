// SPDX-License-Identifier: BSD-3-Clause
#include <base/ticks.hpp>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace nessie {

namespace {

constexpr std::chrono::milliseconds kLeastTimeBetween{2};

/// It goes on at the same rate in every state of the processor, and in sleep ("constant", "nonstop").
bool counts_evenly() {
#if defined(__x86_64__)
  constexpr unsigned kPowerManagement = 0x80000007, kInvariant = 1u << 8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariant) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

}  // namespace

const bool Ticks::reads_counter_ = counts_evenly();

namespace {

/// One moment, as both clocks tell it.
struct Moment {
  std::uint64_t ticks = Ticks::now();
  Clock::time_point time = Clock::now();
};
const Moment beginning;

}  // namespace

double Ticks::nanoseconds() {
  if (!reads_counter_) return static_cast<double>(Clock::period::num) * 1e9 / static_cast<double>(Clock::period::den);
  Moment end;
  while (end.time - beginning.time < kLeastTimeBetween) end = {};
  const auto time = std::chrono::duration<double, std::nano>(end.time - beginning.time).count();
  return time / static_cast<double>(end.ticks - beginning.ticks);
}

}  // namespace nessie
