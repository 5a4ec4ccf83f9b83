// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/faulty/faults.hpp"

#include <gtest/gtest.h>

namespace nnti::faulty {
namespace {

using namespace std::chrono_literals;

Result<Faults> load(std::string_view key, const char *value) {
  nessie::Config config;
  config.set(key, value);
  return Faults::load(config);
}

TEST(Faults, AreProbabilitiesWithExtents) {
  EXPECT_EQ(load("nnti.faulty.loss", "0.25")->loss.probability, 0.25);
  const auto turns = load("nnti.faulty.delay", "1:20")->delay;
  EXPECT_EQ(turns.probability, 1);
  EXPECT_EQ(turns.extent.turns, 20u);
  EXPECT_EQ(load("nnti.faulty.break", "0.1:250ms")->breaks.extent.time, 250ms);
  EXPECT_TRUE(load("nnti.faulty.silent", "0.1:forever")->silent.extent.forever);
  EXPECT_EQ(load("nnti.faulty.seed", "77")->seed, 77u);
}

TEST(Faults, ThatCannotBeReadAreErrorsThatNameTheSetting) {
  for (const char *value : {"", "x", "-1", "2", "0.1:", "0.1:soon", "nan", "0.1x"}) {
    const auto faults = load("nnti.faulty.reorder", value);
    ASSERT_EQ(faults.code(), Code::kInvalidArgument) << value;
    EXPECT_NE(faults.error().message.find("nnti.faulty.reorder"), std::string::npos);
  }
}

TEST(FaultyDice, FallTheSameWayForTheSameSeed) {
  Dice one(5), same(5), other(6);
  int different = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto value = one.next();
    ASSERT_EQ(value, same.next());
    different += value != other.next();
  }
  EXPECT_EQ(different, 1000);
  EXPECT_EQ(Dice(1).next(), 0x910a2dec89025cc1u) << "schedules that were written down would no longer be the same";
}

TEST(FaultyDice, FallAsOftenAsTheProbabilitySays) {
  Dice dice(1);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += dice.chance(0.1);
  EXPECT_NEAR(hits, 10'000, 500);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(dice.chance(0));
    EXPECT_TRUE(dice.chance(1));
  }
}

}  // namespace
}  // namespace nnti::faulty
