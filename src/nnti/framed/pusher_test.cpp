// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/framed/pusher.hpp"

#include <gtest/gtest.h>

namespace nnti {
namespace {

using namespace std::chrono_literals;

TEST(Pace, IsSlowerTheLongerNothingWasOld_AndQuickAgainOnceSomethingIs) {
  Pace pace;
  const auto after_calm_looks = [&] {
    for (unsigned i = 0; i < Pace::kCalmLooks; ++i) pace.on_look(false);
    return pace.period();
  };
  EXPECT_EQ(pace.period(), 1ms);
  EXPECT_EQ(after_calm_looks(), 2ms);
  EXPECT_EQ(after_calm_looks(), 4ms);
  EXPECT_EQ(after_calm_looks(), 8ms);
  EXPECT_EQ(after_calm_looks(), 8ms);
  pace.on_look(true);
  EXPECT_EQ(pace.period(), 1ms);
  for (unsigned i = 1; i < Pace::kCalmLooks; ++i) pace.on_look(false);
  EXPECT_EQ(pace.period(), 1ms);
}

struct LatenessOfAThread : testing::Test {
  /// What was held for so long, and then while `deed` was done, goes.
  template <class Deed> bool is_its_fault(std::chrono::milliseconds held, Deed deed) {
    lateness.on_held(nessie::Clock::now() - held);
    deed();
    return lateness.on_sent();
  }
  static void nothing() {}
  static void compute() {
    for (const auto end = nessie::Clock::now() + 3ms; nessie::Clock::now() < end;) {}
  }
  static void sleep() { std::this_thread::sleep_for(1ms); }
  Lateness lateness;
};

TEST_F(LatenessOfAThread, IsNotItsFaultTheFirstTime) {
  EXPECT_FALSE(is_its_fault(0ms, sleep));
  EXPECT_TRUE(is_its_fault(0ms, sleep));
}

TEST_F(LatenessOfAThread, IsItsFaultIfItComputes) {
  bool found = false;
  for (int i = 0; i < 1000 && !found; ++i) found = is_its_fault(0ms, compute);  // others may have the core
  EXPECT_TRUE(found);
}

TEST_F(LatenessOfAThread, IsNotItsFaultIfItNeitherComputesNorSleeps) {
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(is_its_fault(1h, nothing));
}

TEST_F(LatenessOfAThread, IsNotItsFaultIfAnotherOneComesBack) {
  EXPECT_FALSE(is_its_fault(0ms, sleep));
  lateness.on_held(nessie::Clock::now() - 1h);
  std::thread([&] {
    sleep();
    EXPECT_FALSE(lateness.on_sent());
  }).join();
}

}  // namespace
}  // namespace nnti
