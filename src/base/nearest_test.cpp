// SPDX-License-Identifier: BSD-3-Clause
#include "base/nearest.hpp"

#include <gtest/gtest.h>

using nessie::edit_distance;
using nessie::nearest_of;

TEST(Nearest, DistanceCountsChangesAdditionsRemovalsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("info", "info"), 0u);
  EXPECT_EQ(edit_distance("inof", "info"), 1u);
  EXPECT_EQ(edit_distance("timeot", "timeout"), 1u);
  EXPECT_EQ(edit_distance("timeouut", "timeout"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Nearest, IsTheFirstOfThoseThatAreFewEditsAway) {
  EXPECT_EQ(nearest_of("staus", {"run", "trace", "status"}), "status");
  EXPECT_EQ(nearest_of("infos", {"info", "infos"}), "infos");
  EXPECT_EQ(nearest_of("frob", {"run", "info"}), "");
  EXPECT_EQ(nearest_of("statusses", {"status"}), "");
  EXPECT_EQ(nearest_of("ab", {"ac"}), "") << "one letter of two tells nothing";
  EXPECT_EQ(nearest_of(std::string(100'000, 'x'), {"status"}), "");
}
