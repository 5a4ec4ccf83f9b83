// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/box_index.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace streams {
namespace {

BoxArgs box_at(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height) {
  return {{x, y}, {width, height}};
}

std::vector<std::size_t> compared_with_each(const std::vector<BoxArgs> &boxes, const BoxArgs &box) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    if (overlap(boxes[i], box)) numbers.push_back(i);
  return numbers;
}

TEST(BoxIndex, WhatItFinds_IsWhatAComparisonWithEachBoxFinds) {
  std::minstd_rand random(7);
  std::uniform_int_distribution<std::int64_t> place(0, 200), extent(1, 20);
  BoxIndex index;
  std::vector<BoxArgs> boxes;
  for (int i = 0; i < 1000; ++i) {
    const auto box = box_at(place(random), place(random), extent(random), extent(random));
    const auto expected = compared_with_each(boxes, box);
    ASSERT_EQ(index.all(box), expected);
    const auto found = index.find(box);
    ASSERT_EQ(found.has_value(), !expected.empty());
    if (found) {
      ASSERT_TRUE(std::ranges::binary_search(expected, found->number));
      ASSERT_EQ(found->box, boxes[found->number]);
    }
    index.add(box);
    boxes.push_back(box);
  }
  index.clear();
  EXPECT_TRUE(index.empty());
  EXPECT_TRUE(index.all(box_at(0, 0, 300, 300)).empty());
}

TEST(BoxIndex, OfScalars_EachMeetsEach) {
  BoxIndex index;
  EXPECT_FALSE(index.find(BoxArgs{}));
  for (std::size_t i = 0; i < 40; ++i) {
    index.add(BoxArgs{});
    EXPECT_EQ(index.all(BoxArgs{}).size(), i + 1);
  }
}

/// Comparisons with which n boxes that do not overlap are put one after the other, each looked up first.
std::uint64_t comparisons_of(std::int64_t rows, std::int64_t columns) {
  BoxIndex index;
  std::vector<BoxArgs> boxes;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) boxes.push_back(box_at(i * 4, j * 6, 4, 6));
  std::ranges::shuffle(boxes, std::minstd_rand(3));
  for (const auto &box : boxes) {
    EXPECT_FALSE(index.find(box));
    index.add(box);
  }
  return index.comparisons();
}

TEST(BoxIndex, ManyBoxes_CostTheirNumberTimesSquaresOfLogarithms) {
  for (const auto &[rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{1, 10'000}, {10'000, 1}, {64, 64}, {100, 100}}) {
    const auto n = static_cast<double>(rows * columns);
    EXPECT_LT(static_cast<double>(comparisons_of(rows, columns)), n * std::log2(n) * std::log2(n));
  }
}

}  // namespace
}  // namespace streams
