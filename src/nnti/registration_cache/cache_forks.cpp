// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/cache_state.hpp"

#include <pthread.h>

namespace nnti {

namespace {

struct Caches {
  std::mutex mutex;  ///< taken before every other one
  CacheState *first = nullptr;
};
constinit Caches caches;

template <class Function> void for_each_cache(Function function) {
  for (auto *cache = caches.first; cache != nullptr; cache = cache->next_of_process) function(*cache);
}

void before_fork() {
  caches.mutex.lock();
  for_each_cache([](CacheState &cache) { cache.lock_registrar_for_fork(); });
  memory_events::lock_for_fork();
  for_each_cache([](CacheState &cache) { cache.lock_index_for_fork(); });
}

void after_fork(bool in_child) {
  for_each_cache([in_child](CacheState &cache) { cache.unlock_after_fork(in_child); });
  memory_events::unlock_after_fork(in_child);
  caches.mutex.unlock();
}

}  // namespace

void CacheState::unlock_after_fork(bool in_child) noexcept {
  if (in_child) {
    index_.forget_all();
    counted_ = {};
    attention_ = 0;
  }
  mutex_.unlock();
  registrar_mutex_.unlock();
}

void cache_forks::add(CacheState &cache) {
  static const int registered = pthread_atfork(
      &before_fork, [] { after_fork(false); }, [] { after_fork(true); });
  (void)registered;
  std::lock_guard lock(caches.mutex);
  cache.next_of_process = caches.first;
  caches.first = &cache;
}

void cache_forks::remove(CacheState &cache) noexcept {
  std::lock_guard lock(caches.mutex);
  auto **link = &caches.first;
  while (*link != nullptr && *link != &cache) link = &(*link)->next_of_process;
  if (*link != nullptr) *link = cache.next_of_process;
}

}  // namespace nnti
