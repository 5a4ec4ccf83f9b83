// SPDX-License-Identifier: BSD-3-Clause
// Counters: relaxed atomics, cheap enough for hot paths, read by whoever reports.
#pragma once

#include <atomic>
#include <cstdint>

namespace nessie {

class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A level that goes up and down and remembers its highest mark.
class Gauge {
 public:
  void add(std::int64_t n) {
    auto now = value_.fetch_add(n, std::memory_order_relaxed) + n;
    auto high = high_.load(std::memory_order_relaxed);
    while (now > high && !high_.compare_exchange_weak(high, now, std::memory_order_relaxed)) {}
  }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }
  std::int64_t high() const { return high_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0}, high_{0};
};

}  // namespace nessie
