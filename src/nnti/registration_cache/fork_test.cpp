// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/child_testing.hpp"
#include "nnti/registration_cache/registrar_test.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace nnti {
namespace {

using test::CountingRegistrar;
using test::kAccess;
using test::Pages;

template <class Check> int in_child(Check check) { return test::reap(test::fork_child(check)); }

TEST(RegistrationCacheFork, GivesTheChildAnEmptyCacheAndLeavesTheParentsAlone) {
  CountingRegistrar registrar;
  RegistrationCache cache(registrar);
  const Pages memory(16);
  auto used = cache.acquire(memory.pages(0, 2), kAccess);
  ASSERT_TRUE(cache.acquire(memory.pages(4, 2), kAccess).ok());
  const int code = in_child([&] {
    if (cache.statistics().regions != 0) return 1;
    if (registrar.alive != 2) return 2;
    auto mine = cache.acquire(memory.pages(4, 2), kAccess);
    if (!mine.ok() || mine->as<CountingRegistrar::Entry>().number != 3) return 3;
    *used = {};  // the parent's: must not be deregistered here
    if (registrar.dropped != 0) return 4;
    memory.replace(4, 2);
    if (mine->current()) return 5;
    mine->reset();
    return registrar.dropped == 1 ? 0 : 6;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(registrar.alive, 2);
  EXPECT_TRUE(used->current());
  auto again = cache.acquire(memory.pages(4, 2), kAccess);
  EXPECT_EQ(again->as<CountingRegistrar::Entry>().number, 2);
  EXPECT_EQ(cache.statistics().hits, 1u);
}

TEST(RegistrationCacheFork, LetsTheChildCloseItsCache) {
  CountingRegistrar registrar;
  auto cache = std::make_unique<RegistrationCache>(registrar);
  const Pages memory(16);
  auto used = cache->acquire(memory.pages(0, 2), kAccess);
  ASSERT_TRUE(cache->acquire(memory.pages(4, 2), kAccess).ok());
  const int code = in_child([&] {
    if (!cache->acquire(memory.pages(8, 2), kAccess).ok()) return 1;
    cache.reset();
    if (registrar.dropped != 1) return 2;  // its own
    *used = {};
    return registrar.dropped == 1 ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
  *used = {};
  cache.reset();
  EXPECT_EQ(registrar.alive, 0);
}

TEST(RegistrationCacheFork, KeepsTheParentsWhenAClosedCacheStillHasLeases) {
  CountingRegistrar registrar;
  auto cache = std::make_unique<RegistrationCache>(registrar);
  const Pages memory(4);
  auto used = cache->acquire(memory.all(), kAccess);
  cache.reset();
  EXPECT_EQ(in_child([&] {
              *used = {};
              return registrar.dropped == 0 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(registrar.alive, 1);
}

TEST(RegistrationCacheFork, IsSafeWhileOtherThreadsUseTheCache) {
  CountingRegistrar registrar;
  RegistrationCache cache(registrar, {.regions = 4});
  const Pages memory(64);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t first : {0, 32})
    threads.emplace_back([&, first] {
      for (std::size_t i = 0; !stop; i = (i + 5) % 28) {
        if (!cache.acquire(memory.pages(first + i, 3), kAccess).ok()) return;
        memory.replace(first + i, 1);
      }
    });
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(in_child([&] {
                auto mine = cache.acquire(memory.all(), kAccess);
                memory.replace(0, 64);
                return mine.ok() && !mine->current() ? 0 : 1;
              }),
              0);
  stop = true;
  for (auto &thread : threads) thread.join();
}

/// What some libraries do: fork takes a lock of theirs, under which their threads give memory back.
std::mutex library_mutex;

TEST(RegistrationCacheFork, GoesOnBesideLibrariesThatLockWhileTheyGiveMemoryBack) {
  pthread_atfork([] { library_mutex.lock(); }, [] { library_mutex.unlock(); }, [] { library_mutex.unlock(); });
  CountingRegistrar registrar;
  RegistrationCache cache(registrar);
  const Pages memory(4);
  ASSERT_TRUE(cache.acquire(memory.all(), kAccess).ok());
  std::atomic<bool> stop{false};
  std::thread library([&] {
    while (!stop) {
      std::lock_guard lock(library_mutex);
      memory.replace(0, 1);
    }
  });
  for (int i = 0; i < 50; ++i) EXPECT_EQ(in_child([] { return 0; }), 0);
  stop = true;
  library.join();
}

}  // namespace
}  // namespace nnti
