// SPDX-License-Identifier: BSD-3-Clause
#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <climits>

using namespace std::chrono_literals;
using nessie::Deadline;

TEST(Deadline, NeverDoesNotPassAndPollsForEver) {
  EXPECT_FALSE(Deadline::never().passed());
  EXPECT_EQ(Deadline::never().poll_timeout_ms(), -1);
}

TEST(Deadline, NowHasPassedAndPollsNotAtAll) {
  EXPECT_TRUE(Deadline::now().passed());
  EXPECT_EQ(Deadline::now().poll_timeout_ms(), 0);
}

TEST(Deadline, MillisecondsFollowThePapersConvention) {
  EXPECT_TRUE(Deadline::from_ms(-1).is_never());
  EXPECT_TRUE(Deadline::from_ms(0).passed());
  EXPECT_FALSE(Deadline::from_ms(3'600'000).passed());
}

TEST(Deadline, PollTimeoutIsRoundedUpAndBounded) {
  EXPECT_GE(Deadline::in(3600s).poll_timeout_ms(), 3'500'000);
  EXPECT_EQ(Deadline::in(std::chrono::hours(24 * 365)).poll_timeout_ms(), INT_MAX);
  EXPECT_EQ(Deadline::at(nessie::Clock::now() - 1s).poll_timeout_ms(), 0);
}

TEST(Deadline, EarlierOfTwoIsTheOneThatPassesFirst) {
  auto soon = Deadline::in(1s), late = Deadline::in(2s);
  EXPECT_EQ(late.earlier(soon).when(), soon.when());
  EXPECT_EQ(Deadline::never().earlier(late).when(), late.when());
}
