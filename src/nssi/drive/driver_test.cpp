// SPDX-License-Identifier: BSD-3-Clause
// The role of the driver, wanted by several threads: one at a time has it, and nothing handed over is lost.
#include <gtest/gtest.h>

#include <nssi/drive/driver.hpp>

#include <array>
#include <thread>
#include <vector>

namespace nssi {
namespace {

using nessie::Deadline;

constexpr int kTimes = 20'000;

/// Something that only the driver may touch: `busy` tells if two do at once.
struct Guarded {
  std::atomic<bool> busy{false};
  long count = 0;
  void touch() {
    EXPECT_FALSE(busy.exchange(true));
    ++count;
    busy.store(false);
  }
};

/// Touches it as the driver, or has the driver do it, and waits for that.
void touch(Driver &driver, Guarded &guarded) {
  if (Turn turn(driver); turn) return guarded.touch();
  std::atomic<bool> done{false};
  driver.hand_over([&] {
    guarded.touch();
    done.store(true);
    driver.note_done();
  });
  for (const auto limit = Deadline::in(std::chrono::seconds(20)); !done.load();) {
    if (Turn turn(driver); !turn) driver.wait_for_turn(done, limit);
    ASSERT_FALSE(limit.passed()) << "what was handed over is not done";
  }
  driver.pass_on();
}

void touch_from_threads(Driver &driver, Guarded &guarded, int threads) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) touch(driver, guarded);
    });
  for (auto &thread : all) thread.join();
}

TEST(Driver, WhatWasHandedOverIsDoneBeforeWhatComesLater) {
  Driver driver;
  for (int i = 0; i < 2; ++i) {
    bool is_done = false;
    driver.hand_over([&] { is_done = true; });
    const Turn turn(driver);
    EXPECT_TRUE(turn && is_done);
  }
}

TEST(Driver, OneThreadComesAndGoes) {
  Driver driver;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(driver.is_mine());
    Turn turn(driver);
    EXPECT_TRUE(turn && driver.is_mine());
    EXPECT_TRUE(Turn(driver).nested());
  }
}

TEST(Driver, SeveralThreads_OneAtATimeHasTheRole) {
  Driver driver;
  Guarded guarded;
  touch_from_threads(driver, guarded, 4);
  EXPECT_EQ(guarded.count, 4L * kTimes);
}

TEST(Driver, AContestThatBeginsLater_EndsTheFavouredThreadsPrivilege) {
  for (int round = 0; round < 50; ++round) {
    Driver driver;
    Guarded guarded;
    std::atomic<bool> others_began{false};
    std::thread other([&] {
      while (!others_began.load()) std::this_thread::yield();
      for (int i = 0; i < 100; ++i) touch(driver, guarded);
    });
    for (int i = 0; i < 500; ++i) {
      if (i == 250) others_began.store(true);
      touch(driver, guarded);
    }
    other.join();
    EXPECT_EQ(guarded.count, 600);
  }
}

TEST(Driver, WhoWaits_IsWokenForItsOwnSake_OrInTurnWhenTheRoleIsFree) {
  constexpr std::size_t kThreads = 8;
  Driver driver;
  const auto limit = Deadline::in(std::chrono::seconds(20));
  std::array<std::atomic<bool>, kThreads> done{};
  std::atomic<std::size_t> came{0}, returned{0};
  std::vector<std::thread> threads;
  std::thread first([&] { (void)Turn(driver); });  // contested from now on
  first.join();
  ASSERT_TRUE(driver.try_take());
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      EXPECT_FALSE(driver.try_take());
      ++came;
      driver.wait_for_turn(done[i], limit);
      ++returned;
      driver.pass_on();
    });
  const auto is = [&](const std::atomic<std::size_t> &number, std::size_t count) {
    while (number.load() < count && !limit.passed()) std::this_thread::yield();
    return number.load() == count;
  };
  ASSERT_TRUE(is(came, kThreads));
  done[3].store(true);
  driver.note_done();
  driver.wake_done(false);
  EXPECT_TRUE(is(returned, 1)) << "only one thing was done, and the role was not left";
  driver.give_up();
  EXPECT_TRUE(is(returned, kThreads)) << "who did not take the role did not pass it on";
  for (auto &thread : threads) thread.join();
  EXPECT_FALSE(limit.passed());
}

TEST(Driver, WhoRuns_GetsTheRoleFromWhoHasIt) {
  Driver driver;
  std::atomic<bool> is_inside{false}, may_leave{false};
  std::thread first([&] {
    Turn turn(driver);
    is_inside.store(true);
    while (!may_leave.load()) std::this_thread::yield();
  });
  while (!is_inside.load()) std::this_thread::yield();
  EXPECT_FALSE(driver.try_take());
  driver.take_for_run([&] { may_leave.store(true); });
  EXPECT_TRUE(driver.is_mine());
  driver.give_up();
  first.join();
}

}  // namespace
}  // namespace nssi
