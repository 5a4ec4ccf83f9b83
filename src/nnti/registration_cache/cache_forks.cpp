// SPDX-License-Identifier: BSD-3-Clause
// Design notes. Nothing is locked while the process forks. Other libraries' handlers take locks of theirs, before ours
// or after, under which their other threads give memory back, which takes ours: whatever the order, it could be the
// wrong one. So the child begins anew in the same place, and looks at nothing that a thread of its parent may have been
// in the middle of; the list of caches is changed by one store at a time.
#include "nnti/registration_cache/cache_state.hpp"

#include <pthread.h>

#include <new>

namespace nnti {

namespace {

struct Caches {
  std::mutex mutex;  ///< of those who change the list
  std::atomic<CacheState *> first{nullptr};
};
constinit Caches caches;
constinit std::atomic<std::uint32_t> current_generation{0};

void begin_anew_in_child() noexcept {
  current_generation.fetch_add(1, std::memory_order_relaxed);
  new (&caches.mutex) std::mutex;
  memory_events::begin_anew_in_child();
  for (auto *cache = caches.first.load(); cache != nullptr; cache = cache->next_of_process.load())
    cache->begin_anew_in_child();
}

}  // namespace

void CacheState::begin_anew_in_child() noexcept {
  new (&mutex_) std::mutex;
  new (&registrar_mutex_) std::mutex;
  new (&index_) RegionIndex;
  pending_ = {};
  counted_ = {};
  attention_ = 0;
  inherited_ = true;
}

std::uint32_t cache_forks::generation() noexcept { return current_generation.load(std::memory_order_relaxed); }

void cache_forks::add(CacheState &cache) {
  static const int registered = pthread_atfork(nullptr, nullptr, &begin_anew_in_child);
  (void)registered;
  std::lock_guard lock(caches.mutex);
  cache.next_of_process = caches.first.load();
  caches.first = &cache;
}

void cache_forks::remove(CacheState &cache) noexcept {
  std::lock_guard lock(caches.mutex);
  auto *link = &caches.first;
  while (*link != nullptr && *link != &cache) link = &link->load()->next_of_process;
  if (*link != nullptr) *link = cache.next_of_process.load();
}

}  // namespace nnti
