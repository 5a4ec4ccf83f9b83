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
    cache_ = std::make_unique<PageCache>(budget_bytes, account_);
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

  std::unique_ptr<Page> take(PageState last) {
    auto *next = cache_->next(last);
    return next == nullptr ? nullptr : cache_->take(*next);
  }

  /// Writes one page to the "file", by boxes as the server does.
  bool drain_one(PageState last) {
    auto page = take(last);
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

  nessie::Budget budget_;
  nessie::Budget::Account account_{budget_, "pages"};
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
  const auto gather = [&](const Piece &piece) {
    return Gather(*cached_, piece, reinterpret_cast<std::byte *>(got.data())).advance(*cache_) == Gather::State::kDone;
  };
  ASSERT_TRUE(gather(inside));
  for (RunCursor c(cached_->variable, inside); !c.done(); c.consume(c.run().size()))
    for (auto e = c.run().begin; e < c.run().end; ++e) wanted.push_back(expected_[static_cast<std::size_t>(e)]);
  EXPECT_EQ(got, wanted);
  EXPECT_FALSE(gather({0, {1, 4, 4}, {4, 4, 4}, {}}));
}

TEST_F(PageCacheTest, AWriteDuringADrainGoesToANewPage) {
  make(1 << 24, {8, 8});
  const Piece all{0, {0, 0}, {8, 8}, {}};
  put(all);
  auto draining = take(PageState::kFull);
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

TEST_F(PageCacheTest, BlocksOfAnySizeDoNotMeet_AndWhatIsGivenBackIsOneAgain) {
  constexpr std::size_t kBudget = 4 << 20;
  nessie::Budget process;
  nessie::Budget::Account account(process, "pages");
  PageMemory memory(kBudget, 4608, account);
  std::vector<std::pair<PageMemory::Block, int>> blocks;
  const auto check_and_free = [&](std::size_t i) {
    for (std::size_t b = 0; b < blocks[i].first.size_bytes; ++b)
      ASSERT_EQ(blocks[i].first.data[b], static_cast<std::byte>(blocks[i].second));
    memory.free(blocks[i].first);
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (int i = 0; i < 3000; ++i) {
    if (const auto block = memory.allocate(static_cast<std::size_t>(pick(1, 100'000)))) {
      std::memset(block.data, i & 0xff, block.size_bytes);
      blocks.emplace_back(block, i & 0xff);
    } else {
      check_and_free(static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(blocks.size()) - 1)));
    }
    ASSERT_LE(memory.used_bytes(), kBudget);
  }
  while (!blocks.empty()) check_and_free(0);
  EXPECT_EQ(memory.used_bytes(), 0u);
  EXPECT_TRUE(memory.allocate(kBudget));
}

TEST_F(PageCacheTest, WhatWasInUseIsUsedAgainFirst) {
  nessie::Budget process;
  nessie::Budget::Account account(process, "pages");
  PageMemory memory(64 << 20, 4608, account);
  const auto first = memory.allocate(1 << 20), second = memory.allocate(1 << 20);
  memory.free(first);
  EXPECT_EQ(memory.allocate(1 << 20).data, first.data);
  memory.free(second);
  EXPECT_EQ(memory.allocate(1 << 19).data, second.data);
}

TEST_F(PageCacheTest, TouchingAheadGoesThroughAllOnce_AndChangesNothing) {
  nessie::Budget process;
  nessie::Budget::Account account(process, "pages");
  PageMemory memory(8 << 20, 4608, account);
  const auto used = memory.allocate(3 << 20);
  std::memset(used.data, 0x5a, used.size_bytes);
  std::size_t touched = 0;
  for (auto next = memory.next_to_touch(1 << 20); !next.empty(); next = memory.next_to_touch(1 << 20)) {
    PageMemory::touch(next);
    touched += next.size();
  }
  EXPECT_EQ(touched, 8u << 20);
  for (std::size_t b = 0; b < used.size_bytes; ++b) ASSERT_EQ(used.data[b], std::byte{0x5a});
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
TEST_F(PageCacheTest, WhereTheSystemHasNoMemory_ThereIsTheBudget) {
  nessie::Budget process;
  nessie::Budget::Account account(process, "pages");
  PageMemory memory(64 << 10, 4608, account);
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
  nessie::Budget process;
  nessie::Budget::Account account(process, "pages");
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &little), 0);
  PageMemory memory(std::uint64_t{1} << 42, 1 << 20, account);
  EXPECT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(memory.allocate(1 << 20));
}
#endif

TEST_F(PageCacheTest, APageThatIsBeingFilledHoldsUpNoDrain_AndItsMemoryStays) {
  make(1 << 24, {1 << 20});
  auto &filled = *cache_->writable(*cached_, 0), &empty = *cache_->writable(*cached_, 1 << 19);
  filled.pin(), empty.pin();
  const auto watch = std::make_shared<DrainWatch>();
  cache_->request_drain(*cached_, {0, INT64_MAX}, PageState::kUrgent, watch);
  EXPECT_EQ(watch->left, 0u) << "nothing has come yet";
  cache_->wrote(filled, {{0, 10}});
  auto page = take(PageState::kPartial);
  ASSERT_EQ(page.get(), &filled);
  EXPECT_EQ(page->dirty_bounds(), (Interval{0, 10}));
  EXPECT_FALSE(take(PageState::kPartial));
  const auto used = cache_->used_bytes();
  cache_->give_back(std::move(page));
  EXPECT_EQ(cache_->used_bytes(), used) << "it is still being filled";
  EXPECT_FALSE(filled.is_attached());
  cache_->unpin(filled);
  EXPECT_LT(cache_->used_bytes(), used);
  cache_->unpin(empty);
  EXPECT_EQ(cache_->used_bytes(), 0u);
  EXPECT_TRUE(cached_->pages.empty());
}

TEST_F(PageCacheTest, FewRecordsTakeThePagesOfFew) {
  PageCache cache(64 << 20, account_);
  Variable variable;
  variable.is_record = true;
  variable.element_bytes = 4;
  variable.shape = {0, 100'000};
  const auto cached = cache.adopt(variable);
  const Piece record{0, {3, 0}, {1, 100'000}, {}};
  const std::vector<float> values(100'000);
  Scatter scatter(*cached, record, reinterpret_cast<const std::byte *>(values.data()));
  EXPECT_TRUE(scatter.advance(cache));
  EXPECT_LT(cache.used_bytes(), 100'000u * 4 * 5 / 4);
}

TEST_F(PageCacheTest, FullPagesLeaveFirst) {
  make(1 << 24, {8});
  auto other = cache_->adopt(cached_->variable);
  cache_->wrote(*cache_->writable(*other, 0), {{0, 1}});
  put({0, {0}, {8}, {}});
  auto first = take(PageState::kPartial);
  EXPECT_EQ(&first->owner(), cached_.get());
  cache_->give_back(std::move(first));
  cache_->give_back(take(PageState::kPartial));
  EXPECT_EQ(cache_->used_bytes(), 0u);
}

std::vector<std::byte> bytes_of(const Values &values) {
  const auto *begin = reinterpret_cast<const std::byte *>(values.data());
  return {begin, begin + values.size() * sizeof(std::int32_t)};
}

TEST_F(PageCacheTest, WhatIsInTheFileStaysForReaders) {
  make(1 << 20, {64, 64});
  cached_->keeps_clean = true;
  const Piece all{0, {0, 0}, {64, 64}, {}};
  put(all);
  while (drain_one(PageState::kPartial)) continue;
  EXPECT_EQ(cached_->dirty_bytes, 0u);
  EXPECT_EQ(cached_->dirty_bounds().size(), 0);
  EXPECT_EQ(cache_->clean_bytes(), cache_->used_bytes());
  std::vector<std::byte> got(std::size_t{64} * 64 * 4);
  Gather gather(*cached_, all, got.data());
  EXPECT_EQ(gather.advance(*cache_), Gather::State::kDone);
  EXPECT_EQ(got, bytes_of(expected_));
  cache_->forget(*cached_);
  EXPECT_EQ(cache_->used_bytes(), 0u);
  EXPECT_EQ(Gather(*cached_, all, got.data()).advance(*cache_), Gather::State::kMissing);
}

TEST_F(PageCacheTest, WhoWritesOverACleanPageHidesIt) {
  make(1 << 20, {64, 64});
  cached_->keeps_clean = true;
  put({0, {0, 0}, {64, 64}, {}});
  while (drain_one(PageState::kPartial)) continue;
  put({0, {3, 3}, {1, 5}, {}});
  std::vector<std::byte> got(std::size_t{64} * 64 * 4);
  EXPECT_EQ(Gather(*cached_, {0, {3, 3}, {1, 5}, {}}, got.data()).advance(*cache_), Gather::State::kDone);
  EXPECT_EQ(Gather(*cached_, {0, {3, 0}, {1, 8}, {}}, got.data()).advance(*cache_), Gather::State::kDirty);
  while (drain_one(PageState::kPartial)) continue;
  EXPECT_EQ(Gather(*cached_, {0, {3, 3}, {1, 5}, {}}, got.data()).advance(*cache_), Gather::State::kDone);
  EXPECT_EQ(Gather(*cached_, {0, {3, 0}, {1, 8}, {}}, got.data()).advance(*cache_), Gather::State::kMissing);
  EXPECT_EQ(file_, expected_);
}

TEST_F(PageCacheTest, CleanPagesGoWhenAWriterWantsTheirMemory) {
  make(64 << 10, {64, 1024});
  cached_->keeps_clean = true;
  (void)cache_->memory().next_to_touch(64 << 10);
  for (std::int64_t row = 0; row < 64; ++row) {
    put({0, {row, 0}, {1, 1024}, {}});
    while (drain_one(PageState::kPartial)) continue;
    ASSERT_LE(cache_->used_bytes(), 64u << 10);
  }
  EXPECT_GT(cached_->clean.size(), 8u);
  const auto oldest = cached_->clean.begin()->first;
  ASSERT_NE(cache_->find(*cached_, oldest * cached_->page_elements).page, nullptr) << "it is read, and stays longest";
  while (cached_->clean.size() > 1) ASSERT_NE(cache_->writable(*cached_, (cached_->pages.size()) * 1024), nullptr);
  EXPECT_TRUE(cached_->clean.contains(oldest));
}

TEST_F(PageCacheTest, WritersTakeThePlaceOfCleanPagesBeforeMemoryThatWasNeverUsed) {
  make(1 << 20, {64, 1024});
  cached_->keeps_clean = true;
  put({0, {0, 0}, {16, 1024}, {}});
  const auto high = cache_->high_bytes();
  for (std::int64_t row = 0; row < 64; row += 16) {
    while (drain_one(PageState::kPartial)) continue;
    put({0, {row, 0}, {16, 1024}, {}});
  }
  EXPECT_EQ(cache_->high_bytes(), high);
  EXPECT_EQ(file_.size(), expected_.size());
}

TEST_F(PageCacheTest, ACleanPageThatIsBeingReadStays) {
  make(64 << 10, {64, 1024});
  cached_->keeps_clean = true;
  put({0, {40, 0}, {1, 1024}, {}});
  while (drain_one(PageState::kPartial)) continue;
  Page &page = *cached_->clean.begin()->second;
  page.pin();
  put({0, {40, 0}, {1, 1024}, {}});
  EXPECT_FALSE(page.is_attached());
  EXPECT_EQ(*reinterpret_cast<std::int32_t *>(page.data()) + 1024, expected_[std::size_t{40} * 1024]) << "as it was";
  while (drain_one(PageState::kPartial)) continue;
  const auto used = cache_->used_bytes();
  cache_->unpin(page);
  EXPECT_LT(cache_->used_bytes(), used);
  EXPECT_EQ(file_, expected_);
}

}  // namespace
}  // namespace staging
