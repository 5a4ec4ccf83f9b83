// SPDX-License-Identifier: BSD-3-Clause
#include <base/histogram.hpp>
#include <base/ticks.hpp>

#include <gtest/gtest.h>

namespace nessie {
namespace {

template <class Any> void check_buckets() {
  for (std::size_t bucket = 0; bucket + 1 < Any::kBuckets; ++bucket) {
    const auto largest = Any::largest_in(bucket);
    EXPECT_EQ(Any::bucket_of(largest), bucket);
    EXPECT_EQ(Any::bucket_of(largest + 1), bucket + 1);
  }
  EXPECT_EQ(Any::bucket_of(~std::uint64_t{0}), Any::kBuckets - 1);
}

TEST(Histogram, EachBucketBeginsWhereTheOneBeforeEnds) {
  check_buckets<Histogram>();
  check_buckets<CoarseHistogram>();
}

TEST(Histogram, KnowsAValueToAFourthOfItself) {
  for (std::uint64_t value = 1; value < (std::uint64_t{1} << 44); value += value / 3 + 1) {
    const auto largest = Histogram::largest_in(Histogram::bucket_of(value));
    EXPECT_GE(largest, value);
    EXPECT_LE(largest, value + value / 4);
  }
}

TEST(Histogram, TakesTheLargestValueThatThereIs) {
  Histogram histogram;
  histogram.record(~std::uint64_t{0});
  EXPECT_EQ(histogram.counts().back(), 1u);
  EXPECT_EQ(histogram.max(), ~std::uint64_t{0});
}

TEST(Histogram, CountsAValueForAsManyAsItStandsFor) {
  Histogram histogram;
  histogram.record(10, 16);
  histogram.record(1000);
  EXPECT_EQ(histogram.counts()[Histogram::bucket_of(10)], 16u);
  EXPECT_EQ(histogram.sum(), 1160u);
  EXPECT_EQ(histogram.max(), 1000u);
}

TEST(Ticks, AgreeWithTheClock) {
  const auto length = Ticks::nanoseconds();
  const auto start = Ticks::now();
  const auto from = Clock::now();
  while (Clock::now() - from < std::chrono::milliseconds(5)) {}
  const auto time = std::chrono::duration<double, std::nano>(Clock::now() - from).count();
  const auto ticks = static_cast<double>(Ticks::since(start)) * length;
  EXPECT_GE(ticks, time * 0.95);
  EXPECT_LE(Ticks::between(7, 3), 0u);
}

}  // namespace
}  // namespace nessie
