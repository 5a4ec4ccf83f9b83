// SPDX-License-Identifier: BSD-3-Clause
#include <service/interval_set.hpp>

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace nessie::service {
namespace {

TEST(IntervalSet, AddAndSubtract_DoWhatASetOfNumbersDoes) {
  IntervalSet set;
  std::set<std::int64_t> model;
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int i = 0; i < 3000; ++i) {
    const auto begin = pick(0, 90), end = begin + pick(0, 10);
    const bool add = pick(0, 1) == 0;
    add ? set.add({begin, end}) : set.subtract({begin, end});
    for (auto n = begin; n < end; ++n) add ? (void)model.insert(n) : (void)model.erase(n);
    std::set<std::int64_t> seen;
    for (auto [b, e] : set.runs())
      for (auto n = b; n < e; ++n) seen.insert(n);
    ASSERT_EQ(seen, model);
    ASSERT_EQ(set.size(), static_cast<std::int64_t>(model.size()));
    ASSERT_EQ(set.empty(), model.empty());
  }
}

TEST(IntervalSet, TellsWhatItHasInCommonWithARun_AndWhereOfItsOwnEnd) {
  IntervalSet set;
  set.add({10, 20});
  set.add({30, 40});
  EXPECT_TRUE(set.overlaps({19, 25}));
  EXPECT_TRUE(set.overlaps({0, 100}));
  EXPECT_FALSE(set.overlaps({20, 30}));
  EXPECT_FALSE(set.overlaps({0, 10}));
  EXPECT_FALSE(set.overlaps({40, 50}));
  EXPECT_EQ(set.end_of_run(10), 20);
  EXPECT_EQ(set.end_of_run(39), 40);
  EXPECT_EQ(set.end_of_run(20), 20);
  EXPECT_EQ(set.end_of_run(5), 5);
}

}  // namespace
}  // namespace nessie::service
