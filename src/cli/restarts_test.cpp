// SPDX-License-Identifier: BSD-3-Clause
#include "restarts.hpp"

#include <gtest/gtest.h>

namespace nessie::cli {
namespace {

using namespace std::chrono_literals;

TEST(Restarts, AServerThatDiesIsStartedAtOnce_AndThenAfterPausesThatGrow) {
  Restarts restarts;
  const auto now = Clock::now();
  auto last = now - 1ms;
  for (int i = 0; i < 5; ++i) {
    const auto next = restarts.next(now);
    ASSERT_TRUE(next);
    EXPECT_GT(next->when(), last);
    last = next->when();
  }
  EXPECT_LT(last, now + 1s);
}

TEST(Restarts, AServerThatDiesTooOftenIsGivenUp_AndOneThatDiesNowAndThenIsNot) {
  Restarts restarts;
  auto now = Clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(restarts.next(now));
  EXPECT_FALSE(restarts.next(now));
  EXPECT_FALSE(restarts.next(now + 9s));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(restarts.next(now += 20s)) << i;
}

}  // namespace
}  // namespace nessie::cli
