// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/written_records.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace staging {
namespace {

TEST(WrittenRecords, WhatNobodyWroteIsOlderThanEverything) {
  const WrittenRecords written;
  EXPECT_EQ(written.last(0, 100), 0U);
  EXPECT_EQ(written.last(5, 5), 0U);
}

TEST(WrittenRecords, AProgramThatAppendsIsOneRun) {
  WrittenRecords written;
  for (std::int64_t record = 0; record < 1000; ++record)
    for (Moment put = 1; put <= 3; ++put) written.note(record, record + 1, moment_of(1, 7 * record + put));
  EXPECT_EQ(written.runs(), 1U);
  for (const std::int64_t record : {0, 1, 2, 500, 999}) {
    EXPECT_EQ(written.last(record, record + 1), moment_of(1, 7 * record + 3));
    EXPECT_EQ(written.last(0, record + 1), moment_of(1, 7 * record + 3));
  }
}

TEST(WrittenRecords, AnOldRecordThatIsWrittenOverLeavesOthersAsTheyWere) {
  WrittenRecords written;
  for (std::int64_t record = 0; record < 10; ++record) written.note(record, record + 1, 10 + record);
  written.note(4, 5, 50);
  EXPECT_EQ(written.last(3, 4), 13U);
  EXPECT_EQ(written.last(4, 5), 50U);
  EXPECT_EQ(written.last(5, 6), 15U);
  EXPECT_EQ(written.last(0, 10), 50U);
}

TEST(WrittenRecords, AWriteThatComesLateDoesNotHideALaterOne) {
  WrittenRecords written;
  written.note(2, 4, 20);
  written.note(0, 6, 10);
  EXPECT_EQ(written.last(0, 2), 10U);
  EXPECT_EQ(written.last(2, 4), 20U);
  EXPECT_EQ(written.last(4, 6), 10U);
}

TEST(WrittenRecords, ADataModeThatBeginsLaterIsLaterThanAllCallsOfTheOneBefore) {
  EXPECT_GT(moment_of(2, 0), moment_of(1, 1U << 30));
  EXPECT_GT(kAlwaysLater, moment_of(0xFFFFFE, ~std::uint64_t{0}));
}

/// Against one number for each record. Where runs are forgotten it may only be later.
TEST(WrittenRecords, AnyWritesAreNeverTakenForOlderThanTheyAre) {
  std::mt19937 random(2011);
  constexpr std::int64_t kRecords = 300;
  for (const int writes : {20, 2000}) {
    WrittenRecords written;
    std::vector<Moment> exact(kRecords);
    for (int i = 1; i <= writes; ++i) {
      const auto begin = static_cast<std::int64_t>(random() % kRecords);
      const auto end = std::min(kRecords, begin + 1 + static_cast<std::int64_t>(random() % 5));
      const Moment when = random() % 8 == 0 ? i / 2 : i;
      written.note(begin, end, when);
      for (auto record = begin; record < end; ++record)
        exact[static_cast<std::size_t>(record)] = std::max(exact[static_cast<std::size_t>(record)], when);
    }
    EXPECT_LE(written.runs(), 64U);
    for (std::int64_t record = 0; record < kRecords; ++record)
      EXPECT_GE(written.last(record, record + 1), exact[static_cast<std::size_t>(record)]);
    EXPECT_EQ(written.last(0, kRecords), *std::max_element(exact.begin(), exact.end()));
  }
}

TEST(WrittenRecords, FewWritesAreKnownExactly) {
  WrittenRecords written;
  std::mt19937 random(42);
  std::vector<Moment> exact(100);
  for (Moment when = 1; when <= 30; ++when) {
    const auto record = random() % exact.size();
    written.note(static_cast<std::int64_t>(record), static_cast<std::int64_t>(record) + 1, when);
    exact[record] = when;
  }
  for (std::size_t record = 0; record < exact.size(); ++record)
    EXPECT_EQ(written.last(static_cast<std::int64_t>(record), static_cast<std::int64_t>(record) + 1), exact[record]);
}

}  // namespace
}  // namespace staging
