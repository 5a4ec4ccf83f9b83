// SPDX-License-Identifier: BSD-3-Clause
#include <base/budget.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace nessie {
namespace {

TEST(Budget, WithoutALimit_GivesEverybodyEverything) {
  Budget budget;
  Budget::Account pages(budget, "pages");
  EXPECT_TRUE(pages.try_take(std::uint64_t{1} << 60));
  EXPECT_TRUE(pages.try_take(1));
}

TEST(Budget, Full_GivesNothingMore_UntilSomeHasComeBack) {
  Budget budget(100);
  Budget::Account pages(budget, "pages"), lanes(budget, "lanes");
  ASSERT_TRUE(pages.try_take(60));
  ASSERT_TRUE(lanes.try_take(40));
  EXPECT_FALSE(pages.try_take(1));
  lanes.give_back(10);
  EXPECT_TRUE(pages.try_take(10));
  EXPECT_EQ(budget.used_bytes(), 100u);
}

TEST(Budget, AnAccountThatHasNothing_GetsSomething_HoweverLarge) {
  Budget budget(100);
  Budget::Account pages(budget, "pages"), lanes(budget, "lanes");
  ASSERT_TRUE(pages.try_take(100));
  EXPECT_TRUE(lanes.try_take(500));
  EXPECT_FALSE(lanes.try_take(1));
}

TEST(Budget, WhatMustBeHad_IsTakenInAnyCase_AndCounts) {
  Budget budget(100);
  Budget::Account pages(budget, "pages");
  pages.take(150);
  EXPECT_EQ(budget.used_bytes(), 150u);
  EXPECT_FALSE(pages.try_take(1));
}

TEST(Budget, Shortage_IsToldToTheOthers_AndRoomToThoseWhoWait) {
  Budget budget(100);
  int shortages = 0, rooms = 0, mine = 0;
  Budget::Account kept(budget, "kept", {.on_shortage = [&] { ++shortages; }});
  Budget::Account pages(budget, "pages", {.on_room = [&] { ++rooms; }, .on_shortage = [&] { ++mine; }});
  kept.take(99);
  ASSERT_TRUE(pages.try_take(1));
  kept.give_back(1);
  EXPECT_EQ(rooms, 0) << "nobody was refused anything";
  EXPECT_FALSE(pages.try_take(2));
  EXPECT_EQ(shortages, 1);
  EXPECT_EQ(mine, 0) << "one that is short knows";
  kept.give_back(50);
  kept.give_back(1);
  EXPECT_EQ(rooms, 1) << "told once for each refusal";
}

TEST(Budget, AnAccountThatEnds_GivesBackWhatItHas) {
  Budget budget(100);
  {
    Budget::Account pages(budget, "pages");
    ASSERT_TRUE(pages.try_take(80));
    ASSERT_EQ(budget.usage().size(), 1u);
    EXPECT_EQ(budget.usage()[0].name, "pages");
    EXPECT_EQ(budget.usage()[0].used_bytes, 80u);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_TRUE(budget.usage().empty());
}

TEST(Budget, RemembersTheMostThatAnAccountHad) {
  Budget budget;
  Budget::Account pages(budget, "pages");
  pages.take(70);
  pages.give_back(60);
  pages.take(5);
  EXPECT_EQ(pages.usage().used_bytes, 15u);
  EXPECT_EQ(pages.usage().high_bytes, 70u);
}

TEST(Budget, ManyThreads_NeverHaveMoreThanTheLimit) {
  Budget budget(1000);
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Budget::Account account(budget, "one");
      account.take(1);  // from now on it has something, and gets no more than there is
      for (int n = 0; n < 2000; ++n) {
        if (!account.try_take(400)) continue;
        if (budget.used_bytes() > 1000) exceeded = true;
        account.give_back(400);
      }
    });
  for (auto &thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

}  // namespace
}  // namespace nessie
