// SPDX-License-Identifier: BSD-3-Clause
// How often which values occurred. Fixed size, no allocation, one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace nessie {

/// 2^kFineness buckets for each power of two; the last one takes all from 2^44 on, or from some more.
template <unsigned kFineness> class BasicHistogram {
 public:
  static constexpr std::size_t kPerPower = std::size_t{1} << kFineness;
  static constexpr std::size_t kBuckets = 46 * kPerPower;

  /// `weight`: for how many values this one stands.
  void record(std::uint64_t value, std::uint64_t weight = 1) {
    counts_[bucket_of(value)] += weight;
    sum_ += value * weight;
    max_ = std::max(max_, value);
  }
  const std::array<std::uint64_t, kBuckets> &counts() const { return counts_; }
  std::uint64_t sum() const { return sum_; }
  std::uint64_t max() const { return max_; }

  static std::size_t bucket_of(std::uint64_t value) {
    if (value < kPerPower) return static_cast<std::size_t>(value);
    const auto power = static_cast<std::size_t>(std::bit_width(value)) - 1;
    const auto part = (value >> (power - kFineness)) % kPerPower;
    return std::min<std::size_t>((power - kFineness + 1) * kPerPower + part, kBuckets - 1);
  }
  /// The largest value of a bucket that is not the last.
  static std::uint64_t largest_in(std::size_t bucket) {
    if (bucket < kPerPower) return bucket;
    return ((std::uint64_t{kPerPower} + bucket % kPerPower + 1) << (bucket / kPerPower - 1)) - 1;
  }

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t sum_ = 0, max_ = 0;
};

/// A value is known to a fourth of itself.
using Histogram = BasicHistogram<2>;
/// To a power of two, for where there are many.
using CoarseHistogram = BasicHistogram<0>;

}  // namespace nessie
