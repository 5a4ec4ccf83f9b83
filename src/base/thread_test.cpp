// SPDX-License-Identifier: BSD-3-Clause
#include <base/thread.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace {

using nessie::WokenInTurn;

TEST(WokenInTurn, LastsForItsScope_AndNests) {
  const int usual = ::sched_getscheduler(0);
  if (usual != SCHED_OTHER) GTEST_SKIP() << "the test runs with a scheduling policy of its own";
  {
    const WokenInTurn outer(true);
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
    { const WokenInTurn inner(true); }
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
  }
  EXPECT_EQ(::sched_getscheduler(0), usual);
  const WokenInTurn unwanted(false);
  EXPECT_EQ(::sched_getscheduler(0), usual);
}

TEST(WokenInTurn, WhoHasAPolicyOfHisOwn_KeepsIt) {
  std::thread([] {
    const sched_param none{};
    for (const int policy : {SCHED_BATCH, SCHED_OTHER | SCHED_RESET_ON_FORK, SCHED_IDLE}) {
      ASSERT_EQ(::sched_setscheduler(0, policy, &none), 0);
      { const WokenInTurn woken(true); }
      EXPECT_EQ(::sched_getscheduler(0), policy);
    }
  }).join();
}

}  // namespace
