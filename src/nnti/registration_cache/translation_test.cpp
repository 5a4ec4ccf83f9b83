// SPDX-License-Identifier: BSD-3-Clause
// No stale translation is ever used: memory is mapped, moved, emptied, freed and registered at random, in several
// threads, and whatever the cache hands out must reach the memory that is there.
#include "nnti/conformance/tools_testing.hpp"
#include "nnti/registration_cache/registrar_test.hpp"
#include "nnti/registration_cache/witness_test.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace nnti {
namespace {

using test::kAccess;
using test::Witness;

/// From this size on, malloc maps a block of its own.
constexpr int kMappedBytes = 1 << 18;

constexpr int kTurns = test::kSanitized ? 400 : 1500;

std::byte *map(void *at, std::size_t size_bytes, int flags, int fd = -1) {
  void *memory = ::mmap(at, size_bytes, PROT_READ | PROT_WRITE, flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte *>(memory);
}

/// A piece of memory that one thread owns.
struct Block {
  enum Kind { kMapped, kShared, kAllocated };
  Kind kind = kMapped;
  std::span<std::byte> memory;
};

/// One thread's work.
class Worker {
 public:
  Worker(RegistrationCache &cache, Witness &witness, unsigned seed)
      : cache_(cache), witness_(witness), random_(seed), blocks_(12) {}
  ~Worker() {
    leases_.clear();
    for (auto &block : blocks_) give_up(block);
  }

  void run() {
    for (int turn = 0; turn < kTurns && stale_ == 0; ++turn) take_turn(blocks_[pick(blocks_.size())]);
  }
  int stale() const { return stale_; }
  int checked() const { return checked_; }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }
  std::size_t pages(std::size_t most) { return (1 + pick(most)) * page_bytes(); }

  void take_turn(Block &block) {
    if (block.memory.empty()) return make(block);
    switch (pick(12)) {
      case 0: return give_up(block);
      case 1: return change_mapping(block);
      case 2:
      case 3: return empty(block);
      case 4:
        if (!leases_.empty()) leases_.erase(leases_.begin() + static_cast<std::ptrdiff_t>(pick(leases_.size())));
        return;
      default: return use(block);
    }
  }

  void take(Block &block, Block::Kind kind, std::byte *memory, std::size_t size_bytes) {
    if (memory == nullptr) return;
    block = {kind, {memory, size_bytes}};
    witness_.mark(block.memory);
  }

  void make(Block &block) {
    const auto size_bytes = pages(32);
    switch (pick(4)) {
      case 0: return take(block, Block::kMapped, map(nullptr, size_bytes, MAP_PRIVATE), size_bytes);
      case 1: return make_shared(block, size_bytes);
      case 2: return allocate(block, kMappedBytes + pick(1 << 20));
      default: return allocate(block, (witness_.sees_parts_of_pages() ? 64 : kMappedBytes) + pick(40000));
    }
  }

  void allocate(Block &block, std::size_t size_bytes) {
    take(block, Block::kAllocated, static_cast<std::byte *>(std::malloc(size_bytes)), size_bytes);
  }

  void make_shared(Block &block, std::size_t size_bytes) {
    const int fd = static_cast<int>(::syscall(SYS_memfd_create, "block", 0));
    if (::ftruncate(fd, static_cast<off_t>(size_bytes)) == 0)
      take(block, Block::kShared, map(nullptr, size_bytes, MAP_SHARED, fd), size_bytes);
    ::close(fd);
  }

  void give_up(Block &block) {
    if (block.memory.empty()) return;
    if (block.kind == Block::kAllocated)
      std::free(block.memory.data());
    else
      ::munmap(block.memory.data(), block.memory.size());
    block.memory = {};
  }

  /// The same addresses, or some of them, get other memory.
  void empty(Block &block) {
    if (block.kind == Block::kAllocated) return reallocate(block);
    const auto first = pick(block.memory.size() / page_bytes()) * page_bytes();
    auto part = block.memory.subspan(first);
    part = part.first((1 + pick(part.size() / page_bytes())) * page_bytes());
    if (pick(2) == 0)
      map(part.data(), part.size(), MAP_PRIVATE | MAP_FIXED);
    else
      ::madvise(part.data(), part.size(), block.kind == Block::kShared ? MADV_REMOVE : MADV_DONTNEED);
    witness_.mark(part);
  }

  void reallocate(Block &block) {
    const auto size_bytes = (witness_.sees_parts_of_pages() ? 64 : kMappedBytes) + pick(1 << 20);
    take(block, Block::kAllocated, static_cast<std::byte *>(std::realloc(block.memory.data(), size_bytes)), size_bytes);
  }

  /// Unmaps and maps again, most times at the same addresses; another thread may have been quicker.
  void renew(Block &block) {
    const auto old = block.memory;
    give_up(block);
    take(block, Block::kMapped, map(old.data(), old.size(), MAP_PRIVATE), old.size());
  }

  void change_mapping(Block &block) {
    if (block.kind != Block::kMapped) return;
    const auto size_bytes = pages(64);
    if (pick(3) == 0) return renew(block);
    // Parts of it may be mappings of their own, which mremap refuses to move together.
    if (pick(2) == 0) {
      void *moved = ::mremap(block.memory.data(), block.memory.size(), size_bytes, MREMAP_MAYMOVE);
      if (moved != MAP_FAILED) take(block, Block::kMapped, static_cast<std::byte *>(moved), size_bytes);
      return;
    }
    auto *target = map(nullptr, size_bytes, MAP_PRIVATE);
    witness_.mark({target, size_bytes});
    if (auto lease = cache_.acquire({target, size_bytes}, kAccess); lease.ok()) check(*lease, {target, size_bytes});
    void *moved = ::mremap(block.memory.data(), block.memory.size(), size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (moved != MAP_FAILED)
      take(block, Block::kMapped, target, size_bytes);
    else
      ::munmap(target, size_bytes);
  }

  void use(Block &block) {
    const auto first = pick(block.memory.size());
    auto part = block.memory.subspan(first);
    part = part.first(1 + pick(part.size()));
    auto lease = cache_.acquire(part, kAccess);
    if (!lease.ok()) {
      ADD_FAILURE() << lease.error().message;
      return;
    }
    check(*lease, part);
    if (pick(4) == 0 && leases_.size() < 16) leases_.push_back(std::move(*lease));
  }

  void check(RegistrationCache::Lease &lease, std::span<std::byte> part) {
    ++checked_;
    if (!witness_.agrees(lease.registration(), part)) ++stale_;
  }

  RegistrationCache &cache_;
  Witness &witness_;
  std::minstd_rand random_;
  std::vector<Block> blocks_;
  std::vector<RegistrationCache::Lease> leases_;
  int stale_ = 0, checked_ = 0;
};

struct Tally {
  int stale = 0, checked = 0;
};

Tally run_workers(RegistrationCache &cache, Witness &witness, unsigned count, unsigned seed) {
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) workers.push_back(std::make_unique<Worker>(cache, witness, seed + i));
  for (auto &worker : workers) threads.emplace_back([&worker] { worker->run(); });
  for (auto &thread : threads) thread.join();
  Tally all;
  for (const auto &worker : workers) {
    all.stale += worker->stale();
    all.checked += worker->checked();
  }
  return all;
}

enum class WitnessKind { kPinning, kMarking };

class Translations : public testing::TestWithParam<WitnessKind> {
 protected:
  void SetUp() override {
    witness_ = make(false);
    if (!witness_) GTEST_SKIP() << reason_;
    ::mallopt(M_TRIM_THRESHOLD, 1 << 16);  // so that the heap shrinks often
    ::mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  }
  std::unique_ptr<Witness> make(bool follows_mapping) {
    return GetParam() == WitnessKind::kPinning ? test::make_pinning_witness(reason_, follows_mapping)
                                               : test::make_marking_witness(follows_mapping);
  }
  std::string reason_;
  std::unique_ptr<Witness> witness_;
};

TEST_P(Translations, AreNeverStaleInOneThread) {
  for (unsigned seed : {1u, 2u}) {
    RegistrationCache cache(*witness_, {.regions = 64});
    const auto tally = run_workers(cache, *witness_, 1, seed);
    EXPECT_EQ(tally.stale, 0) << "seed " << seed << ", " << tally.checked << " uses";
    EXPECT_GT(cache.statistics().hits, 0u);
    EXPECT_GT(cache.statistics().invalidations, 0u);
  }
}

TEST_P(Translations, AreNeverStaleInSeveralThreads) {
  RegistrationCache cache(*witness_, {.regions = 64});
  const auto tally = run_workers(cache, *witness_, 4, 100);
  EXPECT_EQ(tally.stale, 0) << tally.checked << " uses";
  EXPECT_GT(cache.statistics().hits, 0u);
  EXPECT_GT(cache.statistics().invalidations, 0u);
}

TEST_P(Translations, OfTheBreakAreNeverStale) {
  RegistrationCache cache(*witness_);
  const auto size_bytes = 8 * page_bytes();
  for (int turn = 0; turn < 20; ++turn) {
    void *before = ::sbrk(static_cast<intptr_t>(size_bytes));
    ASSERT_NE(before, reinterpret_cast<void *>(-1));
    const std::span memory(static_cast<std::byte *>(before), size_bytes);
    witness_->mark(memory);
    auto lease = cache.acquire(memory, kAccess);
    ASSERT_TRUE(lease.ok()) << lease.error().message;
    EXPECT_TRUE(witness_->agrees(lease->registration(), memory));
    lease->reset();
    ::sbrk(-static_cast<intptr_t>(size_bytes));
  }
  EXPECT_GE(cache.statistics().invalidations, 20u);
}

// The witnesses see what they are there to see.
TEST_P(Translations, WouldBeFoundStaleWereMemoryNotWatched) {
  auto blind = make(true);
  RegistrationCache cache(*blind);
  EXPECT_GT(run_workers(cache, *blind, 1, 1).stale, 0);
}

INSTANTIATE_TEST_SUITE_P(Witnesses, Translations, testing::Values(WitnessKind::kPinning, WitnessKind::kMarking),
                         [](const auto &info) { return info.param == WitnessKind::kPinning ? "Pinning" : "Marking"; });

}  // namespace
}  // namespace nnti
