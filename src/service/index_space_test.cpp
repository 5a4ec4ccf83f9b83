// SPDX-License-Identifier: BSD-3-Clause
#include <service/index_space.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace nessie::service {
namespace {

using Elements = std::vector<std::int64_t>;

/// Element numbers of a piece in the order of its data, the slow and obvious way.
Elements elements_of(const VariableLayout &variable, const Piece &piece) {
  Elements numbers;
  std::int64_t total = 1;
  for (auto n : piece.count) total *= n;
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t rest = i, number = 0, below = 1;
    for (auto d = variable.dims(); d-- > 0;) {
      const auto stride = piece.step(d);
      number += (piece.start[d] + rest % piece.count[d] * stride) * below;
      rest /= piece.count[d];
      below *= variable.shape[d];
    }
    numbers.push_back(number);
  }
  return numbers;
}

class IndexSpace : public testing::Test {
 protected:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  VariableLayout any_variable() {
    VariableLayout variable;
    const auto dims = pick(0, 4);
    for (std::int64_t d = 0; d < dims; ++d) variable.shape.push_back(pick(1, 7));
    return variable;
  }

  Piece any_piece(const VariableLayout &variable) {
    Piece piece;
    const bool strided = pick(0, 2) == 0;
    for (auto size : variable.shape) {
      const auto stride = strided ? pick(1, 3) : 1, start = pick(0, size - 1);
      piece.start.push_back(start);
      piece.count.push_back(pick(1, (size - start + stride - 1) / stride));
      if (strided) piece.stride.push_back(stride);
    }
    return piece;
  }

  std::mt19937 random_{20120525};
};

TEST_F(IndexSpace, RunsVisitEveryElementInTheOrderOfTheData) {
  for (int i = 0; i < 2000; ++i) {
    const auto variable = any_variable();
    const auto piece = any_piece(variable);
    Elements visited;
    for (RunCursor cursor(variable, piece); !cursor.done();) {
      const auto run = cursor.run();
      const auto part = pick(1, run.size());
      for (auto e = run.begin; e < run.begin + part; ++e) visited.push_back(e);
      cursor.consume(part);
    }
    const auto expected = elements_of(variable, piece);
    ASSERT_EQ(visited, expected);
    ASSERT_EQ(checked_elements(variable, piece), static_cast<std::int64_t>(expected.size()));
    ASSERT_EQ(bounds(variable, piece), (Interval{expected.front(), expected.back() + 1}));
  }
}

TEST_F(IndexSpace, RowsVisitEveryElementInTheOrderOfTheDataPageByPage) {
  for (int i = 0; i < 2000; ++i) {
    const auto variable = any_variable();
    const auto piece = any_piece(variable);
    const auto page = pick(1, 40);
    Elements visited;
    for (RunCursor cursor(variable, piece); !cursor.done();) {
      const auto index = cursor.run().begin / page;
      const auto rows = cursor.rows_within({index * page, (index + 1) * page});
      ASSERT_GT(rows.size(), 0);
      for (std::int64_t row = 0; row < rows.count; ++row)
        for (auto e = rows.first.begin; e < rows.first.end; ++e) visited.push_back(e + row * rows.step);
      ASSERT_EQ(visited.back() / page, index);
      cursor.consume(rows);
    }
    ASSERT_EQ(visited, elements_of(variable, piece));
  }
}

TEST_F(IndexSpace, WhatSeveralPiecesCoverIsCountedOnce) {
  for (int i = 0; i < 2000; ++i) {
    const auto variable = any_variable();
    std::vector<Piece> pieces;
    std::set<std::int64_t> covered;
    for (auto n = pick(0, i % 100 == 0 ? 100 : 5); n > 0; --n) {
      pieces.push_back(any_piece(variable));
      const auto elements = elements_of(variable, pieces.back());
      for (const auto &earlier : pieces) {
        if (overlap(pieces.back(), earlier)) continue;
        for (auto element : elements_of(variable, earlier))
          ASSERT_FALSE(std::binary_search(elements.begin(), elements.end(), element));
      }
      covered.insert(elements.begin(), elements.end());
    }
    ASSERT_EQ(covered_elements(variable, pieces), static_cast<std::int64_t>(covered.size()));
  }
}

TEST_F(IndexSpace, RowsOfAPlaneGoTogether) {
  VariableLayout variable;
  variable.shape = {4, 5, 6};
  const auto rows = RunCursor(variable, {0, {1, 1, 2}, {2, 3, 2}, {}}).rows_within({30, 60});
  EXPECT_EQ(rows.first, (Interval{38, 40}));
  EXPECT_EQ(rows.count, 3);
  EXPECT_EQ(rows.step, 6);
}

TEST_F(IndexSpace, WholeRowsMakeOneRun) {
  VariableLayout variable;
  variable.shape = {4, 5, 6};
  EXPECT_EQ(RunCursor(variable, {0, {1, 0, 0}, {2, 5, 6}, {}}).run(), (Interval{30, 90}));
  EXPECT_EQ(RunCursor(variable, {0, {1, 2, 0}, {1, 2, 6}, {}}).run(), (Interval{42, 54}));
}

TEST_F(IndexSpace, RunsDecomposeIntoFewBoxes) {
  for (int i = 0; i < 2000; ++i) {
    const auto variable = any_variable();
    const auto end = pick(1, variable.extent_elements()), begin = pick(0, end - 1);
    std::vector<Box> boxes;
    append_boxes(variable, {begin, end}, boxes);
    ASSERT_LE(boxes.size(), std::max<std::size_t>(1, 2 * variable.dims() - (variable.dims() > 0)));
    std::int64_t next = begin;
    for (const auto &box : boxes)
      for (auto element : elements_of(variable, {0, box.start, box.count, {}})) ASSERT_EQ(element, next++);
    ASSERT_EQ(next, end);
  }
}

TEST_F(IndexSpace, RowsOfABlockJoinToOneBox) {
  VariableLayout variable;
  variable.shape = {6, 7, 8};
  const Piece block{0, {1, 2, 3}, {4, 3, 2}, {}};
  std::vector<Box> boxes;
  for (RunCursor cursor(variable, block); !cursor.done(); cursor.consume(cursor.run().size()))
    append_boxes(variable, cursor.run(), boxes);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0], (Box{block.start, block.count}));
  EXPECT_EQ(describe("t", boxes[0]), "t[1:4,2:4,3:4]");
}

TEST_F(IndexSpace, SlicesFollowEachOtherInTheData) {
  for (int i = 0; i < 2000; ++i) {
    const auto variable = any_variable();
    const auto piece = any_piece(variable);
    const auto most = pick(1, 200);
    Elements visited;
    for (SliceCursor cursor(piece, 4, static_cast<std::size_t>(4 * most)); !cursor.done(); cursor.next()) {
      const auto part = elements_of(variable, cursor.slice());
      ASSERT_LE(static_cast<std::int64_t>(part.size()), most);
      ASSERT_EQ(static_cast<std::int64_t>(part.size()), cursor.elements());
      visited.insert(visited.end(), part.begin(), part.end());
    }
    ASSERT_EQ(visited, elements_of(variable, piece));
  }
}

TEST_F(IndexSpace, RefusesPiecesThatLeaveTheVariable) {
  VariableLayout variable;
  variable.shape = {4, 5};
  EXPECT_FALSE(checked_elements(variable, {0, {0}, {1}, {}}));
  EXPECT_FALSE(checked_elements(variable, {0, {0, 0}, {1, 6}, {}}));
  EXPECT_FALSE(checked_elements(variable, {0, {-1, 0}, {1, 1}, {}}));
  EXPECT_FALSE(checked_elements(variable, {0, {0, 0}, {1, -1}, {}}));
  EXPECT_FALSE(checked_elements(variable, {0, {0, 0}, {2, 2}, {4, 1}}));
  EXPECT_FALSE(checked_elements(variable, {0, {0, 0}, {2, 2}, {0, 1}}));
  EXPECT_FALSE(checked_elements(variable, {0, {0, 0}, {2, 2}, {INT64_MAX, 1}}));
  EXPECT_EQ(checked_elements(variable, {0, {4, 5}, {0, 0}, {}}), 0);
  variable.is_record = true;
  EXPECT_EQ(checked_elements(variable, {0, {1000, 0}, {2, 5}, {}}), 10);
  EXPECT_FALSE(checked_elements(variable, {0, {INT64_MAX / 2, 0}, {2, 5}, {}}));
}

TEST_F(IndexSpace, RunsNearTheLargestElementNumberEnd) {
  VariableLayout variable;
  variable.is_record = true;
  variable.element_bytes = 1;
  variable.shape = {0, 1};
  const Piece piece{0, {0, 0}, {2, 1}, {INT64_MAX / 2 + 2, 1}};
  ASSERT_EQ(checked_elements(variable, piece), 2);
  RunCursor cursor(variable, piece);
  EXPECT_EQ(cursor.run(), (Interval{0, 1}));
  cursor.consume(1);
  EXPECT_EQ(cursor.run(), (Interval{INT64_MAX / 2 + 2, INT64_MAX / 2 + 3}));
  cursor.consume(1);
  EXPECT_TRUE(cursor.done());
}

}  // namespace
}  // namespace nessie::service
