// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/policy.hpp>

#include <gtest/gtest.h>

namespace interpose {
namespace {

/// A program that makes one file after the other. How many of them were left native.
int left_native(Policy &policy, int files, std::int64_t bytes, double staged_s, double native_s) {
  int left = 0;
  for (int i = 0; i < files; ++i) {
    const bool is_native = policy.leaves_next_native().has_value();
    left += is_native ? 1 : 0;
    policy.note({!is_native, bytes, is_native ? native_s : staged_s});
  }
  return left;
}

TEST(Policy, LargeFilesAreStaged) {
  Policy policy;
  EXPECT_EQ(left_native(policy, 100, 1 << 20, 1, 0.001), 0);
}

TEST(Policy, AFewSmallFilesAreStaged) {
  Policy policy;
  EXPECT_EQ(left_native(policy, 4, 1000, 1, 0.001), 0);
}

TEST(Policy, ManySmallFilesGoTheWayThatTakesLess) {
  Policy policy;
  const int left = left_native(policy, 1000, 1000, 0.0012, 0.0004);
  EXPECT_GT(left, 950);
  EXPECT_LT(left, 1000) << "staging is tried again now and then";
  Policy other;
  const int tried = left_native(other, 1000, 1000, 0.0004, 0.0012);
  EXPECT_GE(tried, 3);
  EXPECT_LT(tried, 50);
}

TEST(Policy, ItSaysWhatItHasMeasured) {
  Policy policy;
  left_native(policy, 20, 1000, 0.0012, 0.0004);
  EXPECT_EQ(policy.leaves_next_native(),
            "auto: the files of this program are small, and take 0.4 ms natively, 1.2 ms staged");
}

TEST(Policy, ALargeFileEndsIt) {
  Policy policy;
  EXPECT_GT(left_native(policy, 20, 1000, 0.0012, 0.0004), 10);
  policy.note({false, 1 << 30, 1});
  EXPECT_EQ(left_native(policy, 4, 1000, 0.0012, 0.0004), 0);
}

TEST(Policy, WhatBecomesSlowNativelyIsStagedAgain) {
  Policy policy;
  left_native(policy, 200, 1000, 0.0012, 0.0004);
  const int left = left_native(policy, 1000, 1000, 0.0012, 0.1);
  EXPECT_LT(left, 300);
}

}  // namespace
}  // namespace interpose
