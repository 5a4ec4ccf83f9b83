// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/read_back.hpp>

#include <services/staging/server/page_cache.hpp>

#include <base/crc32c.hpp>

#include <pnetcdf.h>

#include <algorithm>

namespace staging {

namespace {

constexpr std::int64_t kBlockBytes = 64 << 10, kBytesAtOnce = 16 << 20;

std::int64_t block_elements(const Variable &variable) { return kBlockBytes / variable.element_bytes; }

Interval hull_of(const IntervalSet &known) { return {known.runs().begin()->first, known.runs().rbegin()->second}; }

/// Elements as they are in the file; empty: they cannot be read.
std::span<const std::byte> read(NativeFile &file, const Variable &variable, Interval elements) {
  static thread_local std::vector<std::byte> data;
  data.resize(static_cast<std::size_t>(elements.size() * variable.element_bytes));
  auto *to = data.data();
  for (const auto &box : boxes_of(variable, elements)) {
    if (file.read_present(variable, box, to) != NC_NOERR) return {};
    to += box.elements() * variable.element_bytes;
  }
  return data;
}

/// What a run adds to the sum of its block.
std::uint32_t share_of(const Variable &variable, Interval run, std::span<const std::byte> data) {
  const auto behind = block_elements(variable) - 1 - (run.end - 1) % block_elements(variable);
  return nessie::Crc32cShift(static_cast<std::uint64_t>(behind * variable.element_bytes))(sum_of(data));
}

/// Of runs of a block, whose data from the element `first` on were read.
std::uint32_t sum_of_runs(const Variable &variable, const IntervalSet &runs, std::int64_t first,
                          std::span<const std::byte> data) {
  const auto bytes = [&](std::int64_t n) { return static_cast<std::size_t>(n * variable.element_bytes); };
  std::uint32_t sum = 0;
  for (const auto &[begin, end] : runs.runs())
    sum ^= share_of(variable, {begin, end}, data.subspan(bytes(begin - first), bytes(end - begin)));
  return sum;
}

void add(IntervalSet &to, const IntervalSet &more) {
  for (const auto &[begin, end] : more.runs()) to.add({begin, end});
}

}  // namespace

std::string describe(const Variable &variable, Interval run) {
  std::string text;
  for (const auto &box : boxes_of(variable, run)) text += (text.empty() ? "" : ", ") + describe(variable.name, box);
  return text;
}

void ReadBack::forget(NativeFile &file, const Variable &variable, std::span<const Interval> runs) {
  if (runs.empty()) return;
  if (const auto found = differing_.find(variable.varid); found != differing_.end())
    for (const auto &run : runs) found->second.subtract(run);
  const auto size = block_elements(variable);
  auto at = blocks_.lower_bound({variable.varid, runs.front().begin / size});
  while (at != blocks_.end() && at->first <= Place{variable.varid, (runs.back().end - 1) / size}) {
    const Interval block{at->first.second * size, (at->first.second + 1) * size};
    const auto first = std::ranges::upper_bound(runs, block.begin, {}, &Interval::end);
    const auto last = std::ranges::lower_bound(first, runs.end(), block.end, {}, &Interval::begin);
    forget(file, variable, at++, {first, last});
  }
}

void ReadBack::forget(NativeFile &file, const Variable &variable, Blocks::iterator at, std::span<const Interval> runs) {
  const auto &known = at->second.known;
  auto rest = known;
  for (const auto &run : runs) rest.subtract(run);
  if (rest.size() == known.size()) return;
  if (rest.empty()) return void(drop(at));
  const auto hull = hull_of(known);
  const auto data = read(file, variable, hull);
  if (data.empty() || sum_of_runs(variable, known, hull.begin, data) != at->second.sum) {
    add(differing_[variable.varid], rest);
    return void(drop(at));
  }
  runs_ += rest.runs().size() - known.runs().size();
  at->second.sum = sum_of_runs(variable, rest, hull.begin, data);
  at->second.known = std::move(rest);
}

ReadBack::Blocks::iterator ReadBack::drop(Blocks::iterator at) {
  runs_ -= at->second.known.runs().size();
  return blocks_.erase(at);
}

void ReadBack::note(NativeFile &file, const Variable &variable, Interval run, std::span<const std::byte> data) {
  variables_.try_emplace(variable.varid, variable);
  const auto size = block_elements(variable);
  while (run.size() > 0) {
    const Interval part{run.begin, std::min(run.end, (run.begin / size + 1) * size)};
    const auto bytes = static_cast<std::size_t>(part.size() * variable.element_bytes);
    auto &block = blocks_[{variable.varid, run.begin / size}];
    runs_ -= block.known.runs().size();
    block.known.add(part);
    runs_ += block.known.runs().size();
    block.sum ^= share_of(variable, part, data.first(bytes));
    block.number = noted_++;
    data = data.subspan(bytes);
    run.begin = part.end;
  }
  if (runs_ <= kMostRuns) return;
  begin();
  look_at(file, noted_);
}

bool ReadBack::look_at_some(NativeFile &file, std::vector<Run> &differing) {
  look_at(file, synced_);
  for (const auto &[varid, elements] : std::exchange(differing_, {}))
    for (const auto &[begin, end] : elements.runs()) differing.push_back({varid, {begin, end}});
  return blocks_.lower_bound(next_) != blocks_.end();
}

void ReadBack::look_at(NativeFile &file, std::uint64_t synced) {
  std::int64_t bytes = 0;
  auto at = blocks_.lower_bound(next_);
  while (at != blocks_.end() && bytes < kBytesAtOnce) {
    const auto &[place, block] = *at;
    const auto &variable = variables_.at(place.first);
    const auto hull = hull_of(block.known);
    const auto data = read(file, variable, hull);
    const bool is_right = !data.empty() && sum_of_runs(variable, block.known, hull.begin, data) == block.sum;
    if (!is_right) add(differing_[place.first], block.known);
    bytes += hull.size() * variable.element_bytes;
    at = is_right && block.number >= synced ? std::next(at) : drop(at);
  }
  next_ = at != blocks_.end() ? at->first : Place{INT32_MAX, INT64_MAX};
}

}  // namespace staging
