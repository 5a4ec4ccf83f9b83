// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/piece_list.hpp>

#include <gtest/gtest.h>

namespace staging {
namespace {

std::vector<Piece> taken_apart(const Bytes &bytes) {
  std::vector<Piece> pieces;
  Piece piece;
  PieceReader reader((std::span(bytes)));
  while (reader.next(piece)) pieces.push_back(piece);
  EXPECT_FALSE(reader.failed());
  return pieces;
}

bool same(const Piece &a, const Piece &b) {
  return a.varid == b.varid && a.start == b.start && a.count == b.count && a.stride == b.stride;
}

const std::vector<Piece> kPieces = {{7, {0, 127, 128}, {1, 2, 3}, {}},
                                    {7, {1, 16383, 16384}, {4, 5, INT64_MAX}, {}},
                                    {7, {1, 2, 3}, {1, 1, 0}, {1, 2, INT64_MAX}},
                                    {0, {}, {}, {}},
                                    {INT32_MAX, {INT64_MAX}, {1}, {}}};

TEST(PieceList, HasItsPiecesInTheirOrder) {
  PieceList list;
  for (const auto &piece : kPieces) list.append(piece);
  const auto again = taken_apart(list.bytes());
  ASSERT_EQ(again.size(), kPieces.size());
  EXPECT_EQ(list.size(), kPieces.size());
  for (std::size_t i = 0; i < again.size(); ++i) EXPECT_TRUE(same(again[i], kPieces[i])) << i;
}

TEST(PieceList, JoinedListsAreOne) {
  PieceList all{Piece{1, {2}, {3}, {}}}, more{Piece{1, {5}, {1}, {}}, Piece{2, {0, 0}, {2, 2}, {}}};
  all.append(more);
  all.append(Piece{2, {1, 1}, {1, 1}, {}});
  const auto again = taken_apart(all.bytes());
  ASSERT_EQ(again.size(), 4U);
  EXPECT_EQ(all.elements(), 3 + 1 + 4 + 1);
  EXPECT_EQ(again[1].varid, 1);
  EXPECT_EQ(again[3].varid, 2);
  EXPECT_EQ(again[3].start, (Extents{1, 1}));
}

TEST(PieceList, WithoutCountsEveryCountIsOne) {
  const std::int64_t start[] = {4, 9};
  PieceList list;
  list.append(3, 2, start, nullptr, nullptr);
  EXPECT_EQ(taken_apart(list.bytes()).front().count, (Extents{1, 1}));
  EXPECT_EQ(list.elements(), 1);
}

TEST(PieceList, AVariableMayHaveAnyNumberOfDimensions) {
  const Piece piece{0, Extents(100000, 1), Extents(100000, 1), Extents(100000, 1)};
  EXPECT_TRUE(same(taken_apart(PieceList(piece).bytes()).front(), piece));
}

TEST(PieceList, ManyShortPiecesOfAVariableTakeFewBytes) {
  PieceList list;
  for (std::int64_t i = 0; i < 1000; ++i) list.append(Piece{5, {1, 71, 10 * i}, {1, 1, 3}, {}});
  EXPECT_LT(list.bytes().size(), 1000 * 9U);
}

TEST(PieceReader, CutShort_FailsAndDoesNotReadOn) {
  PieceList list;
  for (const auto &piece : kPieces) list.append(piece);
  std::size_t whole = 0;
  for (std::size_t size = 0; size < list.bytes().size(); ++size) {
    PieceReader reader(std::span(list.bytes()).first(size));
    Piece piece;
    while (reader.next(piece)) continue;
    whole += reader.failed() ? 0 : 1;
    EXPECT_FALSE(reader.next(piece));
  }
  EXPECT_EQ(whole, kPieces.size());  // the beginnings that end where a piece does
}

TEST(PieceReader, WhatIsNoPieceIsRefused) {
  const auto fails = [](std::initializer_list<int> numbers) {
    Bytes bytes;
    for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
    PieceReader reader((std::span(bytes)));
    Piece piece;
    return !reader.next(piece) && reader.failed();
  };
  EXPECT_TRUE(fails({0, 1, 1})) << "no variable was named";
  EXPECT_TRUE(fails({4, 0, 0})) << "an unknown flag";
  EXPECT_TRUE(fails({1, 0x80, 0x80, 0x80, 0x80, 0x10, 0})) << "a variable id beyond 32 bits";
  EXPECT_TRUE(fails({1, 0, 2, 0, 1, 0})) << "two dimensions, of which one and a half came";
  EXPECT_TRUE(fails({1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 1})) << "2^63 - 1 dimensions";
  EXPECT_TRUE(fails({1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1})) << "64 bits";
}

}  // namespace
}  // namespace staging
