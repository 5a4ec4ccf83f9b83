// SPDX-License-Identifier: BSD-3-Clause
#include <Trios_timer.h>

#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <chrono>
#include <fstream>

namespace {

template <class Unit> long now_in() {
  return static_cast<long>(
      std::chrono::duration_cast<Unit>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

extern "C" {

log_level timer_debug_level = LOG_UNDEFINED;

double trios_get_time(void) { return static_cast<double>(trios_get_time_ns()) * 1e-9; }
long trios_get_time_ns(void) { return now_in<std::chrono::nanoseconds>(); }
long trios_get_time_ms(void) { return now_in<std::chrono::milliseconds>(); }
long trios_get_time_us(void) { return now_in<std::chrono::microseconds>(); }
int trios_timer_test(void) {
  const long begin = trios_get_time_ns();
  for (int i = 0; i < 1'000'000; ++i)
    if (trios_get_time_ns() > begin) return 0;
  return -1;
}
const char *trios_timer_getimpl(void) { return "clock_gettime(CLOCK_MONOTONIC)"; }

}  // extern "C"

namespace Trios {

double GetTime() { return trios_get_time(); }
long GetTimeMS() { return trios_get_time_ms(); }
long GetTimeNS() { return trios_get_time_ns(); }
long GetTimeUS() { return trios_get_time_us(); }

int WriteTimings(std::ostream &out, const std::string &header, const std::vector<std::string> &timing_desc,
                 const std::vector<double> &timings, const bool write_header) {
  if (write_header) {
    fmt::print(out, "% {}\n", header);
    for (std::size_t i = 0; i < timing_desc.size(); ++i) fmt::print(out, "% {} {}\n", i + 1, timing_desc[i]);
  }
  fmt::print(out, "{}\n", fmt::join(timings, " "));
  return out.good() ? 0 : EIO;
}

int WriteTimings(const std::string &fname, const std::string &header, const std::vector<std::string> &timing_desc,
                 const std::vector<double> &timings, const bool write_header) {
  std::ofstream out(fname, std::ios::app);
  if (!out) return errno;
  return WriteTimings(out, header, timing_desc, timings, write_header);
}

}  // namespace Trios
