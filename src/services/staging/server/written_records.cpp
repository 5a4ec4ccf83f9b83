// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/written_records.hpp>

#include <iterator>
#include <utility>
#include <vector>

namespace staging {

namespace {

constexpr std::size_t kMostRuns = 64;

}  // namespace

void WrittenRecords::note(std::int64_t begin, std::int64_t end, Moment when) {
  if (begin >= end) return;
  cut(begin);
  cut(end);
  std::vector<Runs::value_type> before(runs_.lower_bound(begin), runs_.lower_bound(end));
  runs_.erase(runs_.lower_bound(begin), runs_.lower_bound(end));
  for (const auto &run : before) {
    put(begin, run.first, when);
    put(run.first, run.second.end, std::max(when, latest(run)));
    begin = run.second.end;
  }
  put(begin, end, when);
  while (runs_.size() > kMostRuns) forget_first();
}

Moment WrittenRecords::last(std::int64_t begin, std::int64_t end) const {
  Moment last = 0;
  auto run = runs_.upper_bound(begin);
  if (run != runs_.begin()) --run;
  for (; run != runs_.end() && run->first < end; ++run)
    if (run->second.end > begin) last = std::max(last, at(*run, std::min(end, run->second.end) - 1));
  return last;
}

/// No run goes on over the beginning of this record.
void WrittenRecords::cut(std::int64_t record) {
  auto run = runs_.lower_bound(record);
  if (run == runs_.begin()) return;
  --run;
  if (run->second.end <= record) return;
  runs_.emplace(record, Run{run->second.end, at(*run, record), run->second.step});
  run->second.end = record;
}

/// Where no run is; it becomes a part of the one before it, if it goes on like that.
void WrittenRecords::put(std::int64_t begin, std::int64_t end, Moment when) {
  if (begin >= end) return;
  auto run = runs_.lower_bound(begin);
  if (run != runs_.begin() && std::prev(run)->second.end == begin) {
    auto &before = *std::prev(run);
    auto &[before_end, first, step] = before.second;
    const bool is_one = before_end - before.first == 1, goes_on = when >= first && when != kAlwaysLater;
    if (is_one && end - begin == 1 && goes_on) return void((step = when - first, before_end = end));
    const bool is_flat = (is_one || step == 0) && when == first;
    const bool is_next = end - begin == 1 && goes_on && when == latest(before) + step;
    if (is_flat || is_next) return void(before_end = end);
  }
  runs_.emplace_hint(run, begin, Run{end, when, 0});
}

/// Of the first two runs only the latest moment stays known.
void WrittenRecords::forget_first() {
  const auto first = runs_.begin(), second = std::next(first);
  first->second = {second->second.end, std::max(latest(*first), latest(*second)), 0};
  runs_.erase(second);
}

}  // namespace staging
