// SPDX-License-Identifier: BSD-3-Clause
// A set of numbers, of bytes or elements, as disjoint runs in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace nessie::service {

/// [begin, end).
struct Interval {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Interval &) const = default;
};
/// Holds both; one may be empty.
inline Interval hull(Interval a, Interval b) {
  if (a.size() == 0 || b.size() == 0) return a.size() == 0 ? b : a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

class IntervalSet {
 public:
  void add(Interval run) {
    if (run.size() <= 0) return;
    auto at = runs_.upper_bound(run.begin);
    if (at != runs_.begin() && std::prev(at)->second >= run.begin) --at;
    while (at != runs_.end() && at->first <= run.end) {
      run = {std::min(run.begin, at->first), std::max(run.end, at->second)};
      at = runs_.erase(at);
    }
    runs_.emplace(run.begin, run.end);
  }

  void subtract(Interval run) {
    auto at = runs_.upper_bound(run.begin);
    if (at != runs_.begin() && std::prev(at)->second > run.begin) --at;
    while (at != runs_.end() && at->first < run.end) {
      const Interval old{at->first, at->second};
      at = runs_.erase(at);
      if (old.begin < run.begin) runs_.emplace(old.begin, run.begin);
      if (old.end > run.end) runs_.emplace(run.end, old.end);
    }
  }

  /// Whether any number is in both.
  bool overlaps(Interval run) const {
    const auto behind = runs_.lower_bound(run.end);
    return behind != runs_.begin() && std::prev(behind)->second > run.begin;
  }
  /// The end of the run that has `number`; `number`, if none has.
  std::int64_t end_of_run(std::int64_t number) const {
    const auto behind = runs_.upper_bound(number);
    return behind == runs_.begin() ? number : std::max(number, std::prev(behind)->second);
  }
  bool empty() const { return runs_.empty(); }
  /// How many numbers.
  std::int64_t size() const {
    std::int64_t sum = 0;
    for (auto [begin, end] : runs_) sum += end - begin;
    return sum;
  }
  /// begin → end.
  const std::map<std::int64_t, std::int64_t> &runs() const { return runs_; }

 private:
  std::map<std::int64_t, std::int64_t> runs_;
};

}  // namespace nessie::service
