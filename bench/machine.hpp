// SPDX-License-Identifier: BSD-3-Clause
// What the figures were taken on, and whether its cores were fit for it.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace bench {

/// "commit 1a2b3c4, AMD EPYC, 2 cores".
std::string describe_machine();

/// The cores that this process may run on.
std::vector<int> usable_cores();

/// Binds the calling thread to the i-th usable core while it lives. Without effect where there is only one.
class Pin {
 public:
  explicit Pin(int index);
  ~Pin();
  Pin(const Pin &) = delete;

 private:
  cpu_set_t before_;
};

/// Where one service of many clients goes (see Pin), and its clients: to the other cores in turn, where there are any.
inline constexpr int kCoreOfService = 1;
int core_of_client(int client);

/// This process's memory in user space: its own pages, and of pages that n processes map, 1/n.
double proportional_bytes();
/// Gives this process, and those that it starts, as many descriptors as it may have: a thousand peers need some
/// thousand.
void allow_many_descriptors();

/// One way of a cache line from core to core, in microseconds; 0 where there is only one core.
double cache_line_us();

/// Judges the repetitions of a latency run by the cache-line times taken around each of them.
class CoreWatch {
 public:
  /// Call before the first repetition and after each.
  void bracket() { times_us_.push_back(cache_line_us()); }
  std::vector<int> unfit() const;
  double typical_us() const;

 private:
  std::vector<double> times_us_;
};

/// Of repetitions bracketed by `cache_line_times_us` (one more than there are repetitions): those during which the two
/// cores were, for a while, threads of one physical core, where a cache line takes far less than it mostly does. Empty
/// if that would leave fewer than half of the repetitions.
std::vector<int> unfit_repetitions(const std::vector<double> &cache_line_times_us);

}  // namespace bench
