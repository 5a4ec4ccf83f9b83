// SPDX-License-Identifier: BSD-3-Clause
#include <base/thread.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace {

using nessie::be_woken_in_turn;

TEST(WokenInTurn, LastsUntilItIsTakenBack) {
  std::thread([] {
    if (::sched_getscheduler(0) != SCHED_OTHER) GTEST_SKIP() << "the test runs with a scheduling policy of its own";
    for (const bool wanted : {false, true, true, false, false, true, false}) {
      be_woken_in_turn(wanted);
      EXPECT_EQ(::sched_getscheduler(0), wanted ? SCHED_BATCH : SCHED_OTHER);
    }
  }).join();
}

TEST(WokenInTurn, WhoHasAPolicyOfHisOwn_KeepsIt) {
  std::thread([] {
    const sched_param none{};
    for (const int policy : {SCHED_BATCH, SCHED_OTHER | SCHED_RESET_ON_FORK, SCHED_IDLE}) {
      ASSERT_EQ(::sched_setscheduler(0, policy, &none), 0);
      for (const bool wanted : {true, false}) {
        be_woken_in_turn(wanted);
        EXPECT_EQ(::sched_getscheduler(0), policy);
      }
    }
  }).join();
}

}  // namespace
