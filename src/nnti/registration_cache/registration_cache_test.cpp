// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/registration_cache.hpp"

#include "nnti/registration_cache/registrar_test.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <optional>
#include <thread>

namespace nnti {
namespace {

using nessie::Code;
using test::CountingRegistrar;
using test::Pages;
using Lease = RegistrationCache::Lease;

constexpr std::uint64_t kRead = 1, kWrite = 2;

Lease acquire(RegistrationCache &cache, std::span<const std::byte> memory, std::uint64_t access = kRead) {
  auto lease = cache.acquire(memory, access);
  EXPECT_TRUE(lease.ok()) << lease.error().message;
  return lease.ok() ? std::move(*lease) : Lease();
}

int number_of(const Lease &lease) { return lease.as<CountingRegistrar::Entry>().number; }

class RegistrationCacheTest : public testing::Test {
 protected:
  CountingRegistrar registrar_;
  Pages memory_{64};
};
using RegistrationCacheLimits = RegistrationCacheTest;
using RegistrationCacheMerging = RegistrationCacheTest;
using RegistrationCacheInvalidation = RegistrationCacheTest;

TEST_F(RegistrationCacheTest, RegistersOnceWhatIsUsedAgain) {
  RegistrationCache cache(registrar_);
  const int first = number_of(acquire(cache, memory_.pages(0, 4)));
  EXPECT_EQ(registrar_.alive, 1);
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(0, 4))), first);
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(2, 1).subspan(7, 9))), first);
  EXPECT_EQ(cache.statistics().hits, 2u);
  EXPECT_EQ(cache.statistics().misses, 1u);
  EXPECT_TRUE(cache.keeps_registrations());
}

TEST_F(RegistrationCacheTest, RegistersWholePages) {
  RegistrationCache cache(registrar_);
  auto lease = acquire(cache, memory_.all().subspan(page_bytes() - 1, 2));
  EXPECT_EQ(lease.range(), memory_.range(0, 2));
}

TEST_F(RegistrationCacheTest, KeepsAccessesApart) {
  RegistrationCache cache(registrar_);
  auto reader = acquire(cache, memory_.pages(0, 4), kRead);
  auto writer = acquire(cache, memory_.pages(2, 4), kWrite);
  EXPECT_EQ(reader.range(), memory_.range(0, 4));
  EXPECT_EQ(writer.range(), memory_.range(2, 4));
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(3, 1), kRead)), number_of(reader));
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(3, 1), kWrite)), number_of(writer));
}

TEST_F(RegistrationCacheTest, RefusesEmptyMemory) {
  RegistrationCache cache(registrar_);
  EXPECT_EQ(cache.acquire({}, kRead).code(), Code::kInvalidArgument);
  EXPECT_EQ(cache.acquire(memory_.all().first(0), kRead).code(), Code::kInvalidArgument);
  EXPECT_TRUE(registrar_.asked.empty());
}

TEST_F(RegistrationCacheTest, PassesTheRegistrarsErrorOn) {
  RegistrationCache cache(registrar_);
  registrar_.refused = memory_.range(0, 1);
  EXPECT_EQ(cache.acquire(memory_.pages(0, 2), kRead).code(), Code::kIo);
  EXPECT_EQ(cache.statistics().regions, 0u);
  EXPECT_TRUE(acquire(cache, memory_.pages(4, 2)).valid());
}

TEST_F(RegistrationCacheTest, MovesLeases) {
  RegistrationCache cache(registrar_, {.regions = 0});
  auto lease = acquire(cache, memory_.pages(0, 1));
  Lease other = std::move(lease);
  EXPECT_FALSE(lease.valid());  // NOLINT(bugprone-use-after-move, clang-analyzer-cplusplus.Move): what is tested
  EXPECT_EQ(registrar_.alive, 1);
  other = acquire(cache, memory_.pages(1, 1));
  EXPECT_EQ(registrar_.alive, 1);
  other.reset();
  other.reset();
  EXPECT_EQ(registrar_.alive, 0);
}

TEST_F(RegistrationCacheTest, DeregistersEverythingAtItsEnd) {
  {
    RegistrationCache cache(registrar_);
    for (std::size_t i = 0; i < 8; ++i) acquire(cache, memory_.pages(2 * i, 1));
    EXPECT_EQ(registrar_.alive, 8);
  }
  EXPECT_EQ(registrar_.alive, 0);
}

TEST_F(RegistrationCacheTest, LeasesOutliveTheCache) {
  auto cache = std::make_unique<RegistrationCache>(registrar_);
  auto first = acquire(*cache, memory_.pages(0, 1));
  auto second = acquire(*cache, memory_.pages(4, 1));
  acquire(*cache, memory_.pages(8, 1));
  cache.reset();
  EXPECT_EQ(registrar_.alive, 2);
  EXPECT_EQ(first.as<CountingRegistrar::Entry>().range, memory_.range(0, 1));
  first.reset();
  EXPECT_EQ(registrar_.alive, 1);
  second.reset();
  EXPECT_EQ(registrar_.alive, 0);
}

TEST_F(RegistrationCacheTest, ServesManyThreads) {
  RegistrationCache cache(registrar_, {.regions = 6});
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      unsigned state = seed + 1;
      for (int turn = 0; turn < 2000; ++turn) {
        state = state * 1664525 + 1013904223;
        const auto memory = memory_.pages((state >> 16) % 60, 1 + (state >> 8) % 4);
        const auto lease = acquire(cache, memory);
        const auto wanted = pages_of(reinterpret_cast<std::uintptr_t>(memory.data()), memory.size());
        ASSERT_TRUE(lease.as<CountingRegistrar::Entry>().range.covers(wanted));
      }
    });
  for (auto &thread : threads) thread.join();
  cache.collect();
  EXPECT_LE(registrar_.alive, 6);
  const auto counted = cache.statistics();
  EXPECT_EQ(counted.hits + counted.misses, 8000u);
}

// --- limits -----------------------------------------------------------------------------------------------------------

TEST_F(RegistrationCacheLimits, EvictTheLeastRecentlyUsed) {
  RegistrationCache cache(registrar_, {.regions = 2});
  const int first = number_of(acquire(cache, memory_.pages(0, 1)));
  acquire(cache, memory_.pages(4, 1));
  acquire(cache, memory_.pages(0, 1));
  acquire(cache, memory_.pages(8, 1));
  EXPECT_EQ(registrar_.alive, 2);
  EXPECT_EQ(cache.statistics().evictions, 1u);
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(0, 1))), first);
  EXPECT_EQ(cache.statistics().misses, 3u);
}

TEST_F(RegistrationCacheLimits, BoundTheBytes) {
  RegistrationCache cache(registrar_, {.regions = 100, .bytes = 8 * page_bytes()});
  acquire(cache, memory_.pages(0, 5));
  acquire(cache, memory_.pages(10, 3));
  EXPECT_EQ(cache.statistics().bytes, 8 * page_bytes());
  acquire(cache, memory_.pages(20, 1));
  EXPECT_EQ(cache.statistics().bytes, 4 * page_bytes());
  EXPECT_EQ(registrar_.alive, 2);
}

TEST_F(RegistrationCacheLimits, LeaveAloneWhatIsInUse) {
  RegistrationCache cache(registrar_, {.regions = 1});
  std::vector<Lease> leases;
  for (std::size_t i = 0; i < 5; ++i) leases.push_back(acquire(cache, memory_.pages(2 * i, 1)));
  EXPECT_EQ(registrar_.alive, 5);
  leases.erase(leases.begin() + 1, leases.end());
  EXPECT_EQ(registrar_.alive, 1);
  leases.clear();
  EXPECT_EQ(registrar_.alive, 1);
}

TEST_F(RegistrationCacheLimits, LetGoAtOnceWhatIsTooLarge) {
  RegistrationCache cache(registrar_, {.regions = 100, .bytes = 2 * page_bytes()});
  auto lease = acquire(cache, memory_.pages(0, 5));
  EXPECT_EQ(registrar_.alive, 1);
  lease.reset();
  EXPECT_EQ(registrar_.alive, 0);
}

TEST_F(RegistrationCacheLimits, OfZeroKeepNothing) {
  for (auto limits : {CacheLimits{.regions = 0}, CacheLimits{.bytes = 0}}) {
    RegistrationCache cache(registrar_, limits);
    EXPECT_FALSE(cache.keeps_registrations());
    auto lease = acquire(cache, memory_.pages(0, 1));
    auto again = acquire(cache, memory_.pages(0, 1));
    EXPECT_NE(number_of(lease), number_of(again));
    EXPECT_FALSE(lease.current());
    lease.reset();
    EXPECT_EQ(registrar_.alive, 1);
    again.reset();
    EXPECT_EQ(registrar_.alive, 0);
  }
}

TEST_F(RegistrationCacheLimits, MakeRoomInAFullDomain) {
  RegistrationCache cache(registrar_);
  registrar_.room = 3;
  for (std::size_t i = 0; i < 3; ++i) acquire(cache, memory_.pages(2 * i, 1));
  auto lease = acquire(cache, memory_.pages(20, 1));
  EXPECT_TRUE(lease.valid());
  EXPECT_EQ(registrar_.alive, 1);
  EXPECT_EQ(cache.statistics().evictions, 3u);
}

TEST_F(RegistrationCacheLimits, SayThatADomainIsFullOfWhatIsInUse) {
  RegistrationCache cache(registrar_);
  registrar_.room = 1;
  auto lease = acquire(cache, memory_.pages(0, 1));
  registrar_.asked.clear();
  EXPECT_EQ(cache.acquire(memory_.pages(4, 1), kRead).code(), Code::kNoMemory);
  EXPECT_EQ(registrar_.asked.size(), 1u);
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(0, 1))), number_of(lease));
}

TEST_F(RegistrationCacheLimits, AreSettings) {
  nessie::Config config;
  config.set("nnti.registration_cache.regions", "12");
  config.set("nnti.registration_cache.mib", "3");
  auto limits = CacheLimits::from(config);
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->regions, 12u);
  EXPECT_EQ(limits->bytes, 3u << 20);
  config.set("nnti.registration_cache.mib", "-1");
  EXPECT_EQ(CacheLimits::from(config).code(), Code::kInvalidArgument);
}

TEST_F(RegistrationCacheLimits, AreNoneWhereTheSettingsTurnTheCacheOff) {
  nessie::Config config;
  EXPECT_FALSE(CacheLimits::from(config)->keep_nothing());
  config.set("nnti.registration_cache", "off");
  EXPECT_TRUE(CacheLimits::from(config)->keep_nothing());
  config.set("nnti.registration_cache", "perhaps");
  EXPECT_EQ(CacheLimits::from(config).code(), Code::kInvalidArgument);
}

TEST_F(RegistrationCacheLimits, ClearDropsWhatIsIdle) {
  RegistrationCache cache(registrar_);
  auto lease = acquire(cache, memory_.pages(0, 1));
  acquire(cache, memory_.pages(4, 1));
  cache.clear();
  EXPECT_EQ(registrar_.alive, 1);
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(0, 1))), number_of(lease));
}

// --- merging ----------------------------------------------------------------------------------------------------------

TEST_F(RegistrationCacheMerging, TakesUpWhatOverlaps) {
  RegistrationCache cache(registrar_);
  acquire(cache, memory_.pages(0, 4));
  auto lease = acquire(cache, memory_.pages(3, 4));
  EXPECT_EQ(lease.range(), memory_.range(0, 7));
  EXPECT_EQ(registrar_.alive, 1);
  EXPECT_EQ(cache.statistics().merges, 1u);
}

TEST_F(RegistrationCacheMerging, LeavesWhatIsInUseToItsUsers) {
  RegistrationCache cache(registrar_);
  auto before = acquire(cache, memory_.pages(0, 4));
  auto after = acquire(cache, memory_.pages(2, 4));
  EXPECT_EQ(after.range(), memory_.range(0, 6));
  EXPECT_EQ(before.as<CountingRegistrar::Entry>().range, memory_.range(0, 4));
  EXPECT_EQ(registrar_.alive, 2);
  before.reset();
  EXPECT_EQ(registrar_.alive, 1);
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(0, 6))), number_of(after));
}

TEST_F(RegistrationCacheMerging, JoinsSlicesWithoutRegisteringThemTooOften) {
  RegistrationCache cache(registrar_);
  for (std::size_t i = 0; i < 64; ++i) acquire(cache, memory_.pages(i, 1));
  std::size_t pages = 0;
  for (const auto &range : registrar_.asked) pages += range.size_bytes() / page_bytes();
  EXPECT_EQ(cache.statistics().regions, 1u);
  EXPECT_LE(pages, 64u * 4);  // log2(64) / 2 + 1: half of the slices are registered again at each doubling
}

TEST_F(RegistrationCacheMerging, RegistersAloneWhatCannotBeRegisteredTogether) {
  RegistrationCache cache(registrar_);
  acquire(cache, memory_.pages(0, 4));
  registrar_.refused = memory_.range(0, 1);
  auto lease = acquire(cache, memory_.pages(2, 4));
  EXPECT_EQ(lease.range(), memory_.range(2, 4));
  EXPECT_EQ(registrar_.alive, 1);
}

// --- invalidation -----------------------------------------------------------------------------------------------------

TEST_F(RegistrationCacheInvalidation, ForgetsMemoryThatWasReplaced) {
  RegistrationCache cache(registrar_);
  const int before = number_of(acquire(cache, memory_.pages(0, 8)));
  memory_.replace(3, 1);
  EXPECT_EQ(cache.statistics().invalidations, 1u);
  EXPECT_EQ(cache.statistics().regions, 0u);
  EXPECT_NE(number_of(acquire(cache, memory_.pages(0, 8))), before);
  EXPECT_EQ(registrar_.alive, 1);
}

TEST_F(RegistrationCacheInvalidation, LeavesOtherMemoryAlone) {
  RegistrationCache cache(registrar_);
  const int before = number_of(acquire(cache, memory_.pages(0, 8)));
  memory_.replace(8, 8);
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(0, 8))), before);
}

TEST_F(RegistrationCacheInvalidation, ForgetsEveryAccess) {
  RegistrationCache cache(registrar_);
  for (std::uint64_t access = 1; access <= 4; ++access) {
    acquire(cache, memory_.pages(0, 8), access);
    acquire(cache, memory_.pages(16, 8), access);
  }
  memory_.replace(0, 20);
  EXPECT_EQ(cache.statistics().invalidations, 8u);
  cache.collect();
  EXPECT_EQ(registrar_.alive, 0);
}

TEST_F(RegistrationCacheInvalidation, LeavesALeaseItsRegistration) {
  RegistrationCache cache(registrar_);
  auto lease = acquire(cache, memory_.pages(0, 8));
  auto shared = acquire(cache, memory_.pages(0, 8));
  EXPECT_TRUE(lease.current());
  memory_.replace(0, 8);
  EXPECT_FALSE(lease.current());
  auto fresh = acquire(cache, memory_.pages(0, 8));
  EXPECT_NE(number_of(fresh), number_of(lease));
  EXPECT_EQ(registrar_.alive, 2);
  lease.reset();
  EXPECT_EQ(registrar_.alive, 2);
  shared.reset();
  EXPECT_EQ(registrar_.alive, 1);
  EXPECT_TRUE(fresh.current());
}

TEST_F(RegistrationCacheInvalidation, DeregistersLaterAndNotWithinTheChange) {
  RegistrationCache cache(registrar_);
  acquire(cache, memory_.pages(0, 1));
  acquire(cache, memory_.pages(4, 1));
  memory_.replace(0, 1);
  EXPECT_EQ(registrar_.alive, 2);
  acquire(cache, memory_.pages(4, 1));  // a hit does it too
  EXPECT_EQ(registrar_.alive, 1);
}

TEST_F(RegistrationCacheInvalidation, DoesNotKeepWhatChangesWhileItIsRegistered) {
  RegistrationCache cache(registrar_);
  registrar_.during = [&](AddressRange) { memory_.replace(3, 1); };
  auto lease = acquire(cache, memory_.pages(0, 4));
  registrar_.during = nullptr;
  EXPECT_FALSE(lease.current());
  EXPECT_NE(number_of(acquire(cache, memory_.pages(0, 4))), number_of(lease));
  lease.reset();
  EXPECT_EQ(registrar_.alive, 1);
}

TEST_F(RegistrationCacheInvalidation, SeesFreedBlocks) {
  RegistrationCache cache(registrar_);
  for (std::size_t size : {std::size_t{100}, std::size_t{1} << 20, std::size_t{8} << 20}) {
    void *volatile block = std::malloc(size);
    const auto bytes = std::span(static_cast<const std::byte *>(block), size);
    acquire(cache, bytes);
    std::free(block);
  }
  EXPECT_GE(cache.statistics().invalidations, 1u);
}

TEST_F(RegistrationCacheInvalidation, IsNotNeededWhereRegistrationsFollowTheMapping) {
  registrar_.follows = true;
  RegistrationCache cache(registrar_);
  const int before = number_of(acquire(cache, memory_.pages(0, 4)));
  memory_.replace(0, 4);
  EXPECT_EQ(number_of(acquire(cache, memory_.pages(0, 4))), before);
}

TEST_F(RegistrationCacheInvalidation, ReachesEveryCache) {
  CountingRegistrar other;
  RegistrationCache first(registrar_), second(other);
  acquire(first, memory_.pages(0, 4));
  acquire(second, memory_.pages(0, 4));
  memory_.replace(0, 4);
  EXPECT_EQ(first.statistics().invalidations, 1u);
  EXPECT_EQ(second.statistics().invalidations, 1u);
}

}  // namespace
}  // namespace nnti
