// SPDX-License-Identifier: BSD-3-Clause
// How often which values occurred: four buckets for each power of two, so that a value is known to a fourth of itself.
// Fixed size, no allocation, one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace nessie {

class Histogram {
 public:
  static constexpr std::size_t kBuckets = 184;  ///< the last one takes all from 7 * 2^44 on

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
    if (value < 4) return static_cast<std::size_t>(value);
    const auto power = static_cast<std::size_t>(std::bit_width(value)) - 1;
    const std::size_t bucket = (power - 1) * 4 + ((value >> (power - 2)) & 3);
    return std::min<std::size_t>(bucket, kBuckets - 1);
  }
  /// The largest value of a bucket that is not the last.
  static std::uint64_t largest_in(std::size_t bucket) {
    if (bucket < 4) return bucket;
    const auto power = bucket / 4 + 1;
    return ((std::uint64_t{4} + bucket % 4 + 1) << (power - 2)) - 1;
  }

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t sum_ = 0, max_ = 0;
};

}  // namespace nessie
