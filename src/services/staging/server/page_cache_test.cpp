// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/page_cache.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

namespace staging {
namespace {

using Values = std::vector<std::int32_t>;

/// A variable of ints, its pages, and what must be in the "file" in the end.
class PageCacheTest : public testing::Test {
 protected:
  void make(std::uint64_t budget_bytes, Extents shape) {
    Variable variable;
    variable.shape = std::move(shape);
    variable.element_bytes = 4;
    cache_ = std::make_unique<PageCache>(budget_bytes);
    file_.assign(static_cast<std::size_t>(variable.extent_elements()), -1);
    expected_ = file_;
    cached_ = cache_->adopt(std::move(variable));
  }

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  Piece any_piece() {
    Piece piece;
    const bool strided = pick(0, 2) == 0;
    for (auto size : cached_->variable.shape) {
      const auto stride = strided ? pick(1, 3) : 1, start = pick(0, size - 1);
      piece.start.push_back(start);
      piece.count.push_back(pick(1, (size - start + stride - 1) / stride));
      if (strided) piece.stride.push_back(stride);
    }
    return piece;
  }

  Values fresh_values(const Piece &piece) {
    Values values(static_cast<std::size_t>(*checked_elements(cached_->variable, piece)));
    for (auto &value : values) value = next_value_++;
    return values;
  }

  void expect(const Piece &piece, const Values &values) {
    std::size_t at = 0;
    for (RunCursor cursor(cached_->variable, piece); !cursor.done(); cursor.consume(cursor.run().size()))
      for (auto e = cursor.run().begin; e < cursor.run().end; ++e)
        expected_[static_cast<std::size_t>(e)] = values[at++];
  }

  void put(const Piece &piece) {
    const auto values = fresh_values(piece);
    expect(piece, values);
    Scatter scatter(*cached_, piece, reinterpret_cast<const std::byte *>(values.data()));
    while (!scatter.advance(*cache_)) drain_one(PageState::kPartial);
  }

  /// Writes one page to the "file", by boxes as the server does.
  bool drain_one(PageState last) {
    auto page = cache_->take(last);
    if (!page) return false;
    std::vector<Box> boxes;
    for (auto run = page->dirty_run(page->first()); run.size() > 0; run = page->dirty_run(run.end))
      append_boxes(cached_->variable, run, boxes);
    Values packed(static_cast<std::size_t>(page->elements()));
    for (const auto &box : boxes) {
      pack(*page, cached_->variable, box, reinterpret_cast<std::byte *>(packed.data()));
      std::size_t at = 0;
      for (RunCursor cursor(cached_->variable, {0, box.start, box.count, {}}); !cursor.done();
           cursor.consume(cursor.run().size()))
        for (auto e = cursor.run().begin; e < cursor.run().end; ++e) file_[static_cast<std::size_t>(e)] = packed[at++];
    }
    cache_->give_back(std::move(page));
    return true;
  }

  std::unique_ptr<PageCache> cache_;
  std::unique_ptr<CachedVariable> cached_;
  Values file_, expected_;
  std::int32_t next_value_ = 0;
  std::mt19937 random_{1707};
};

TEST_F(PageCacheTest, RandomPiecesReachTheFileAsWritten) {
  for (std::uint64_t budget : {1u << 12, 1u << 16, 1u << 24}) {
    make(budget, {13, 29, 31});
    for (int i = 0; i < 200; ++i) {
      put(any_piece());
      if (pick(0, 9) == 0) drain_one(PageState::kPartial);
    }
    while (drain_one(PageState::kPartial)) {}
    ASSERT_EQ(file_, expected_) << "budget " << budget;
    EXPECT_EQ(cache_->used_bytes(), 0u);
    EXPECT_EQ(cached_->dirty_bytes, 0u);
  }
}

TEST_F(PageCacheTest, GathersWhatIsWhollyInPages) {
  make(1 << 24, {16, 16, 16});
  put({0, {2, 2, 2}, {8, 8, 8}, {}});
  Values got(64), wanted;
  const Piece inside{0, {4, 4, 4}, {4, 4, 4}, {}};
  ASSERT_TRUE(cache_->gather(*cached_, inside, reinterpret_cast<std::byte *>(got.data())));
  for (RunCursor c(cached_->variable, inside); !c.done(); c.consume(c.run().size()))
    for (auto e = c.run().begin; e < c.run().end; ++e) wanted.push_back(expected_[static_cast<std::size_t>(e)]);
  EXPECT_EQ(got, wanted);
  EXPECT_FALSE(cache_->gather(*cached_, {0, {1, 4, 4}, {4, 4, 4}, {}}, reinterpret_cast<std::byte *>(got.data())));
}

TEST_F(PageCacheTest, AWriteDuringADrainGoesToANewPage) {
  make(1 << 24, {8, 8});
  const Piece all{0, {0, 0}, {8, 8}, {}};
  put(all);
  auto draining = cache_->take(PageState::kFull);
  ASSERT_TRUE(draining);
  const auto before = *reinterpret_cast<const std::int32_t *>(draining->data());
  put(all);
  EXPECT_EQ(*reinterpret_cast<const std::int32_t *>(draining->data()), before);
  EXPECT_EQ(cached_->dirty_bytes, 2u * 8 * 8 * 4);
  cache_->give_back(std::move(draining));
  EXPECT_EQ(cached_->dirty_bytes, 1u * 8 * 8 * 4);
}

TEST_F(PageCacheTest, WithoutBudgetAtLeastOnePageIsHad) {
  make(1, {100000});
  EXPECT_NE(cache_->writable(*cached_, 0), nullptr);
  EXPECT_EQ(cache_->writable(*cached_, 99999), nullptr);
}

TEST_F(PageCacheTest, WatchesCountThePagesTheyAskedFor) {
  make(1 << 16, {100000});
  put({0, {0}, {2000}, {}});
  put({0, {50000}, {10}, {}});
  int told = 0;
  auto watch = std::make_shared<DrainWatch>();
  watch->done = [&] { ++told; };
  cache_->request_drain(*cached_, {0, 2000}, PageState::kUrgent, watch);
  EXPECT_GT(watch->left, 0u);
  while (drain_one(PageState::kUrgent)) EXPECT_EQ(told == 1, watch->left == 0);
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(drain_one(PageState::kPartial));
}

TEST_F(PageCacheTest, MemoryGivenBackLeavesItsNeighboursAlone) {
  PageMemory memory(64 << 10, 4608);
  std::vector<PageMemory::Block> blocks;
  while (auto block = memory.allocate(4600)) std::memset(block.data, 0x5a, block.size_bytes), blocks.push_back(block);
  for (std::size_t i = 1; i < blocks.size(); i += 2) memory.free(blocks[i]);
  for (int i = 0; i < 100; ++i)
    if (auto small = memory.allocate(2000)) blocks.push_back(small);  // takes the idle frames' place
  EXPECT_LE(memory.used_bytes(), 64u << 10);
  for (std::size_t i = 0; i < blocks.size() && blocks[i].size_bytes > 4600; i += 2)
    for (std::size_t b = 0; b < 4600; ++b) ASSERT_EQ(blocks[i].data[b], std::byte{0x5a});
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (i % 2 == 0 || blocks[i].size_bytes < 4600) memory.free(blocks[i]);
}

TEST_F(PageCacheTest, WhatIsTouchedAheadIsUsedFirstAndStaysWithinTheBudget) {
  PageMemory memory(64 << 10, 4608);
  const auto used = memory.allocate(4600);
  std::vector<std::byte *> ahead;
  while (auto frame = memory.take_untouched()) {
    PageMemory::touch(frame);
    EXPECT_EQ(frame.data[frame.size_bytes - 1], std::byte{});
    ahead.push_back(frame.data);
    memory.add_warm(frame);
  }
  EXPECT_LE((ahead.size() + 1) * used.size_bytes, 64u << 10);
  EXPECT_GT((ahead.size() + 2) * used.size_bytes, 64u << 10);
  EXPECT_EQ(memory.used_bytes(), used.size_bytes);
  EXPECT_EQ(memory.allocate(4600).data, ahead.back());
}

TEST_F(PageCacheTest, WhatIsTouchedAheadTooLateIsGivenBack) {
  PageMemory memory(64 << 10, 4608);
  const auto late = memory.take_untouched();
  while (memory.allocate(2000)) continue;
  std::memset(late.data, 0x5a, late.size_bytes);
  memory.add_warm(late);
  EXPECT_EQ(late.data[0], std::byte{});  // the kernel has its memory back
}

/// Takes all that malloc() can have, until it goes.
class NoMemory {
 public:
  NoMemory() {
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit nothing_more{1, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &nothing_more);
    for (std::size_t size = 1 << 20; size >= sizeof(Taken); size /= 2)
      while (void *more = std::malloc(size)) taken_ = ::new (more) Taken{taken_};
  }
  ~NoMemory() {
    ::setrlimit(RLIMIT_AS, &before_);
    while (taken_ != nullptr) std::free(std::exchange(taken_, taken_->next));
  }
  NoMemory(const NoMemory &) = delete;

 private:
  struct Taken {
    Taken *next;
  };
  rlimit before_{};
  Taken *taken_ = nullptr;
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(PageCacheTest, WhereTheSystemHasNoMemory_ThereIsAFrameForAnyBlock) {
  PageMemory memory(64 << 10, 4608);
  PageMemory::Block small, large;
  {
    const NoMemory none;
    small = memory.allocate(100);
    large = memory.allocate(4600);
  }
  ASSERT_TRUE(small);
  ASSERT_TRUE(large);
  std::memset(small.data, 0, small.size_bytes);
  EXPECT_EQ(memory.used_bytes(), small.size_bytes + large.size_bytes);
  memory.free(small);
  memory.free(large);
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST_F(PageCacheTest, WhereThereIsLessMemoryThanTheBudget_ThePagesTakeThat) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit little{std::size_t{1} << 40, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &little), 0);
  PageMemory memory(std::uint64_t{1} << 42, 1 << 20);
  EXPECT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(memory.take_untouched());
}
#endif

TEST_F(PageCacheTest, FullPagesLeaveFirst) {
  make(1 << 24, {8});
  auto other = cache_->adopt(cached_->variable);
  cache_->wrote(*cache_->writable(*other, 0), {{0, 1}});
  put({0, {0}, {8}, {}});
  auto first = cache_->take(PageState::kPartial);
  EXPECT_EQ(&first->owner(), cached_.get());
  cache_->give_back(std::move(first));
  cache_->give_back(cache_->take(PageState::kPartial));
  EXPECT_EQ(cache_->used_bytes(), 0u);
}

}  // namespace
}  // namespace staging
