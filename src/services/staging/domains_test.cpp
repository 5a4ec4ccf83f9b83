// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/domains.hpp>

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace staging {
namespace {

using Index = std::vector<std::int64_t>;

/// The index of element `i` of a piece's data.
Index index_of(const Piece &piece, std::int64_t i) {
  Index index(piece.count.size());
  for (auto d = index.size(); d-- > 0;) {
    index[d] = piece.start[d] + i % piece.count[d] * piece.step(d);
    i /= piece.count[d];
  }
  return index;
}

class DomainsTest : public testing::TestWithParam<bool> {
 protected:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  VariableLayout layout() const {
    VariableLayout layout;
    layout.varid = 3;
    layout.element_bytes = 8;
    layout.is_record = GetParam();
    layout.shape = GetParam() ? Extents{0, 11, 64, 64} : Extents{11, 64, 64};
    return layout;
  }

  Piece any_piece(const VariableLayout &layout) {
    Piece piece;
    const bool strided = pick(0, 1) == 1;
    for (std::size_t d = 0; d < layout.shape.size(); ++d) {
      const auto size = layout.is_record && d == 0 ? 4 : std::min<std::int64_t>(layout.shape[d], 12);
      const auto stride = strided ? pick(1, 3) : 1, start = pick(0, size - 1);
      piece.start.push_back(start);
      piece.count.push_back(pick(1, (size - start + stride - 1) / stride));
      if (strided) piece.stride.push_back(stride);
    }
    return piece;
  }

  std::mt19937 random_{7};
};

TEST_P(DomainsTest, PartsAreThePieceAndEveryElementHasOneOwner) {
  const auto variable = layout();
  for (int servers : {1, 2, 3, 16}) {
    std::map<Index, int> owners;
    for (int i = 0; i < 100; ++i) {
      const auto piece = any_piece(variable);
      std::int64_t next = 0;
      for (const auto &part : Domains(variable, servers).split(piece)) {
        ASSERT_EQ(part.offset_bytes, static_cast<std::size_t>(next) * 8);
        ASSERT_EQ(part.size_bytes, static_cast<std::size_t>(part.piece.elements()) * 8);
        ASSERT_LT(part.server, servers);
        for (std::int64_t e = 0; e < part.piece.elements(); ++e, ++next) {
          const auto index = index_of(part.piece, e);
          ASSERT_EQ(index, index_of(piece, next));
          ASSERT_EQ(owners.emplace(index, part.server).first->second, part.server);
        }
      }
      ASSERT_EQ(next, piece.elements());
    }
  }
}

TEST_P(DomainsTest, OneIndexHasOneOwnerWhateverItsStride) {
  const auto variable = layout();
  Piece piece{variable.varid, {0, 5, 0, 0}, {1, 1, 64, 64}, {1, INT64_MAX, 1, 1}};
  if (!variable.is_record)
    for (auto *each : {&piece.start, &piece.count, &piece.stride}) each->erase(each->begin());
  const auto parts = Domains(variable, 3).split(piece);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].size_bytes, 64U * 64 * 8);
}

TEST_P(DomainsTest, SmallVariablesHaveOneOwner) {
  auto variable = layout();
  variable.shape.back() = 2;
  const Domains domains(variable, 4);
  Piece all;
  all.start.assign(variable.shape.size(), 0);
  all.count = variable.shape;
  if (variable.is_record) all.count[0] = 2;
  EXPECT_EQ(domains.split(all).size(), 1u);
  all.count.back() = 0;
  EXPECT_TRUE(domains.split(all).empty());
}

INSTANTIATE_TEST_SUITE_P(FixedAndRecord, DomainsTest, testing::Bool());

}  // namespace
}  // namespace staging
