// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include "commit.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

namespace bench {
namespace {

constexpr int kTurns = 20000;
constexpr double kUnfitShare = 0.6;

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

struct alignas(128) Line {
  std::atomic<int> turn{0};
};

/// Answers each even turn with the odd one after it. Yields now and then: on a busy machine the partner may be waiting
/// for this core.
void bounce(Line &line, int mine) {
  for (int turn = mine; turn < kTurns; turn += 2) {
    for (int spins = 0; line.turn.load(std::memory_order_acquire) != turn; ++spins)
      if (spins % 4096 == 4095) std::this_thread::yield();
    line.turn.store(turn + 1, std::memory_order_release);
  }
}

/// The upper quartile: a few short times do not move it.
double typical(std::vector<double> times_us) {
  if (times_us.empty()) return 0;
  std::sort(times_us.begin(), times_us.end());
  return times_us[times_us.size() * 3 / 4];
}

}  // namespace

std::string describe_machine() {
  return fmt::format("commit {}, {}, {} cores", kCommit, processor(), usable_cores().size());
}

std::vector<int> usable_cores() {
  static const std::vector<int> cores = [] {
    cpu_set_t set;
    std::vector<int> found;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return found;
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) found.push_back(core);
    return found;
  }();
  return cores;
}

Pin::Pin(int index) {
  sched_getaffinity(0, sizeof before_, &before_);
  auto cores = usable_cores();
  if (cores.size() < 2) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[static_cast<std::size_t>(index) % cores.size()], &set);
  sched_setaffinity(0, sizeof set, &set);
}

Pin::~Pin() { sched_setaffinity(0, sizeof before_, &before_); }

int core_of_client(int client) {
  const int others = std::max(static_cast<int>(usable_cores().size()) - 1, 1);
  const int other = client % others;
  return other < kCoreOfService ? other : other + 1;
}

double cache_line_us() {
  if (usable_cores().size() < 2) return 0;
  Line line;
  std::thread partner([&] {
    Pin pin(1);
    bounce(line, 1);
  });
  double elapsed_us = 0;
  std::thread leader([&] {
    Pin pin(0);
    auto began = std::chrono::steady_clock::now();
    bounce(line, 0);
    elapsed_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
  });
  leader.join();
  partner.join();
  return elapsed_us / kTurns;
}

double CoreWatch::typical_us() const { return typical(times_us_); }

std::vector<int> CoreWatch::unfit() const { return unfit_repetitions(times_us_); }

std::vector<int> unfit_repetitions(const std::vector<double> &times_us) {
  std::vector<int> unfit;
  for (std::size_t i = 0; i + 1 < times_us.size(); ++i)
    if (std::min(times_us[i], times_us[i + 1]) < kUnfitShare * typical(times_us)) unfit.push_back(static_cast<int>(i));
  if (unfit.size() * 2 >= times_us.size()) unfit.clear();
  return unfit;
}

double proportional_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;)
    if (double kibibytes = 0; word == "Pss:" && rollup >> kibibytes) return kibibytes * 1024;
  return 0;
}

void allow_many_descriptors() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace bench
