// SPDX-License-Identifier: BSD-3-Clause
// What flatten.hpp makes of datatypes, beside what MPI packs by them.
#include <interpose/pnetcdf/engine/flatten.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

namespace interpose {
namespace {

constexpr std::size_t kElements = 1 << 16;

/// A datatype, freed in the end.
class Type {
 public:
  explicit Type(MPI_Datatype type) : type_(type) { MPI_Type_commit(&type_); }
  Type(const Type &) = delete;
  Type &operator=(const Type &) = delete;
  ~Type() { MPI_Type_free(&type_); }
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_;
};

/// The elements of an array that hold their own numbers, as MPI packs them.
std::vector<int> packed(MPI_Datatype type) {
  std::vector<int> numbers(kElements);
  std::iota(numbers.begin(), numbers.end(), 0);
  int size = 0, position = 0;
  MPI_Type_size(type, &size);
  std::vector<int> result(static_cast<std::size_t>(size) / sizeof(int));
  MPI_Pack(numbers.data(), 1, type, result.data(), size, &position, MPI_COMM_SELF);
  return result;
}

std::vector<int> flattened(MPI_Datatype type) {
  std::vector<int> result;
  const auto runs = flatten(type);
  EXPECT_TRUE(runs);
  for (const auto &[begin, size] : runs.value_or(std::vector<ByteRun>()))
    for (auto byte = begin; byte < begin + size; byte += sizeof(int))
      result.push_back(static_cast<int>(byte / static_cast<std::int64_t>(sizeof(int))));
  return result;
}

/// Makes datatypes of other ones at random, which may overlap themselves.
class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  MPI_Datatype make(int depth) {
    if (depth == 0) return copy(MPI_INT);
    MPI_Datatype made = MPI_DATATYPE_NULL, old = make(depth - 1);
    build(pick(0, 11), old, &made);
    MPI_Type_free(&old);
    return made;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  MPI_Aint pick_bytes() { return MPI_Aint{pick(0, 12)} * MPI_Aint{sizeof(int)}; }
  static MPI_Datatype copy(MPI_Datatype type) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_dup(type, &made);
    return made;
  }

  void build(int kind, MPI_Datatype old, MPI_Datatype *made) {
    const std::array<int, 3> lengths{pick(0, 3), pick(1, 3), pick(0, 2)}, places{pick(0, 4), pick(0, 9), pick(0, 9)};
    const std::array<MPI_Aint, 3> bytes{pick_bytes(), pick_bytes(), pick_bytes()};
    switch (kind) {
      case 0: MPI_Type_contiguous(pick(1, 4), old, made); break;
      case 1: MPI_Type_vector(pick(1, 3), pick(1, 3), pick(1, 4), old, made); break;
      case 2: MPI_Type_create_hvector(pick(1, 3), pick(1, 3), pick_bytes(), old, made); break;
      case 3: MPI_Type_indexed(3, lengths.data(), places.data(), old, made); break;
      case 4: MPI_Type_create_hindexed(3, lengths.data(), bytes.data(), old, made); break;
      case 5: MPI_Type_create_indexed_block(3, pick(1, 3), places.data(), old, made); break;
      case 6: MPI_Type_create_hindexed_block(3, pick(1, 3), bytes.data(), old, made); break;
      case 7: {
        const std::array<MPI_Datatype, 3> types{old, MPI_INT, old};
        MPI_Type_create_struct(3, lengths.data(), bytes.data(), types.data(), made);
        break;
      }
      case 8: MPI_Type_create_resized(old, 0, MPI_Aint{pick(1, 20)} * MPI_Aint{sizeof(int)}, made); break;
      case 9: MPI_Type_dup(old, made); break;
      default: build_array(kind == 10, old, made);
    }
  }

  void build_array(bool sub, MPI_Datatype old, MPI_Datatype *made) {
    const int order = pick(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    std::array<int, 3> sizes{}, parts{}, starts{};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = pick(1, 5);
      parts[i] = pick(1, sizes[i]);
      starts[i] = pick(0, sizes[i] - parts[i]);
    }
    if (sub)
      MPI_Type_create_subarray(3, sizes.data(), parts.data(), starts.data(), order, old, made);
    else
      distribute(sizes, order, old, made);
  }

  /// In two of three dimensions, over processes that all have some of it.
  void distribute(const std::array<int, 3> &sizes, int order, MPI_Datatype old, MPI_Datatype *made) {
    const std::array<int, 3> kinds{MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC};
    const std::array<int, 3> blocks{MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG, 1};
    const std::array<int, 3> processes{sizes[0] % 2 == 0 ? 2 : 1, 1, sizes[2] > 2 ? 2 : 1};
    const int size = processes[0] * processes[2];
    MPI_Type_create_darray(size, pick(0, size - 1), 3, sizes.data(), kinds.data(), blocks.data(), processes.data(),
                           order, old, made);
  }

  std::mt19937 random_;
};

TEST(Flatten, RandomTypes_AreWhatMpiPacks) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const Type type(Maker(seed).make(1 + static_cast<int>(seed % 3)));
    ASSERT_EQ(flattened(type.get()), packed(type.get())) << "seed " << seed;
  }
}

TEST(Flatten, ManyElementsInARow_AreOneRun) {
  MPI_Datatype row = MPI_DATATYPE_NULL, rows = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(1 << 20, MPI_DOUBLE, &row);
  MPI_Type_contiguous(1 << 7, row, &rows);
  const Type inner(row), outer(rows);
  EXPECT_EQ(flatten(outer.get()), (std::vector<ByteRun>{{0, std::int64_t{8} << 27}}));
}

TEST(Flatten, ATypeOfNothing_HasNoRuns) {
  MPI_Datatype nothing = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  const Type type(nothing);
  EXPECT_EQ(flatten(type.get()), std::vector<ByteRun>());
}

TEST(Flatten, ANamedType_IsItsBytes) { EXPECT_EQ(flatten(MPI_DOUBLE), (std::vector<ByteRun>{{0, 8}})); }

class Mpi : public testing::Environment {
  void SetUp() override { MPI_Init(nullptr, nullptr); }
  void TearDown() override { MPI_Finalize(); }
};
const auto *const kMpi = testing::AddGlobalTestEnvironment(new Mpi);

}  // namespace
}  // namespace interpose
