// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/write_count.hpp>

#include <gtest/gtest.h>

namespace staging {
namespace {

void add(WriteCount &count, std::uint64_t call, int writes) {
  for (int i = 0; i < writes; ++i) count.add(call);
}

TEST(WriteCount, WhoKnowsOfNoWritesNeedNotWait) {
  WriteCount count;
  EXPECT_TRUE(count.has({0, 0}));
  EXPECT_TRUE(count.has({7, 0}));
}

TEST(WriteCount, AllWritesUpToTheCallMustBeThere) {
  WriteCount count;
  add(count, 1, 2);
  add(count, 3, 4);
  EXPECT_TRUE(count.has({1, 2}));
  EXPECT_FALSE(count.has({2, 3}));
  EXPECT_FALSE(count.has({3, 7}));
  add(count, 2, 1);
  EXPECT_TRUE(count.has({2, 3}));
  EXPECT_TRUE(count.has({3, 7}));
}

TEST(WriteCount, WritesOfLaterCallsDoNotStandInForEarlierOnes) {
  WriteCount count;
  add(count, 2, 100);
  EXPECT_FALSE(count.has({1, 1}));
  add(count, 1, 1);
  EXPECT_TRUE(count.has({1, 1}));
  EXPECT_TRUE(count.has({2, 101}));
}

TEST(WriteCount, AQuestionThatIsNotYetTrueChangesNothing) {
  WriteCount count;
  add(count, 3, 1);
  for (std::uint64_t call = 1; call < 10; ++call) EXPECT_FALSE(count.has({call, 2}));
  add(count, 1, 1);
  EXPECT_TRUE(count.has({1, 1}));
  EXPECT_FALSE(count.has({2, 2}));
  EXPECT_TRUE(count.has({3, 2}));
}

TEST(WriteCount, WhoKnowsOfLessThanIsSettledNeedNotWait) {
  WriteCount count;
  add(count, 4, 5);
  add(count, 5, 5);
  EXPECT_TRUE(count.has({5, 10}));
  EXPECT_TRUE(count.has({4, 5}));
  EXPECT_TRUE(count.has({1, 0}));
}

TEST(WriteCount, LateWritesOfSettledCallsCount) {
  WriteCount count;
  add(count, 1, 2);
  ASSERT_TRUE(count.has({2, 2}));
  EXPECT_FALSE(count.has({2, 3}));
  EXPECT_FALSE(count.has({3, 3}));
  add(count, 2, 1);  // it was sent in this call, but nobody had known of it
  EXPECT_TRUE(count.has({2, 3}));
  EXPECT_TRUE(count.has({3, 3}));
  add(count, 3, 1);
  EXPECT_TRUE(count.has({3, 4}));
}

TEST(WriteCount, WhoseWordCountsForNothingChangesNothing) {
  WriteCount count;
  add(count, 1, 2);
  add(count, 3, 1);
  EXPECT_TRUE(count.reached({1, 2}));
  EXPECT_TRUE(count.reached({100, 3}));
  EXPECT_FALSE(count.reached({2, 3}));
  EXPECT_FALSE(count.has({3, 4}));
  add(count, 2, 1);
  EXPECT_TRUE(count.has({3, 4}));
}

TEST(WriteCount, ManyCallsThatNobodyAsksAboutAreAllCounted) {
  constexpr std::uint64_t kCalls = 100'000;
  WriteCount count;
  for (std::uint64_t call = kCalls; call > 0; --call) add(count, call, 2);
  EXPECT_FALSE(count.has({kCalls, 2 * kCalls + 1}));
  EXPECT_TRUE(count.has({kCalls / 2, kCalls}));
  EXPECT_FALSE(count.has({kCalls / 2, kCalls + 1}));
  EXPECT_TRUE(count.has({kCalls, 2 * kCalls}));
}

}  // namespace
}  // namespace staging
