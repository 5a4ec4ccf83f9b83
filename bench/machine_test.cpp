// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

TEST(UnfitRepetitions, AreThoseBesideAShortCacheLineTime) {
  EXPECT_EQ(unfit_repetitions({0.12, 0.12, 0.04, 0.12, 0.12, 0.12, 0.13, 0.12}), (std::vector<int>{1, 2}));
}

TEST(UnfitRepetitions, AreNoneWhereALongTimeIsTheException) {
  EXPECT_TRUE(unfit_repetitions({0.12, 0.12, 0.9, 0.12, 0.12, 0.12, 0.13, 0.12}).empty());
}

TEST(UnfitRepetitions, AreNoneIfTooFewWouldBeLeft) {
  EXPECT_TRUE(unfit_repetitions({0.12, 0.04, 0.12, 0.04, 0.12}).empty());
}

TEST(Pin, GivesTheOtherCoresBack) {
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  { Pin pin(0); }
  sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(DescribeMachine, NamesCommitAndCores) {
  EXPECT_TRUE(describe_machine().starts_with("commit "));
  EXPECT_NE(describe_machine().find(" cores"), std::string::npos);
}

TEST(CoreOfClient, IsNeverTheServices) {
  for (int client = 0; client < 8; ++client) EXPECT_NE(core_of_client(client), kCoreOfService);
  EXPECT_EQ(core_of_client(0), 0);
}

}  // namespace
}  // namespace bench
