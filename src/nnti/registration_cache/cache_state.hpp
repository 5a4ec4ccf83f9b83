// SPDX-License-Identifier: BSD-3-Clause
// The inside of a RegistrationCache. It outlives the cache by the leases that outlive it.
#pragma once

#include "nnti/registration_cache/memory_events.hpp"
#include "nnti/registration_cache/region_index.hpp"
#include "nnti/registration_cache/registrar.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace nnti {

class CacheState final : public MemoryListener {
 public:
  CacheState(Registrar &registrar, CacheLimits limits);

  /// Before a registration that is kept may be handed out.
  void check_watch();
  /// One more use of the region that has these pages; null: there is none.
  CachedRegion *find(AddressRange range, std::uint64_t access) noexcept;
  nessie::Result<CachedRegion *> register_new(AddressRange range, std::uint64_t access);
  void give_back(CachedRegion &region) noexcept;
  /// Deregisters what is due.
  void serve_attention() noexcept;
  void clear() noexcept;
  /// Ends the cache; deletes this now, or with the last lease.
  void close() noexcept;

  CacheStatistics statistics() const noexcept;
  bool keeps() const noexcept { return keeps_.load(std::memory_order_relaxed); }

  void memory_changing(AddressRange range) noexcept override;

  /// In a forked child: the cache is empty. What its parent registered is never looked at again.
  void begin_anew_in_child() noexcept;

  std::atomic<CacheState *> next_of_process{nullptr};  ///< cache_forks'

 private:
  /// What is being registered.
  struct Pending {
    AddressRange range;
    bool changed = false;
  };

  /// What there is to do when somebody gets a lease (kDoomed) or gives one back (both).
  enum Attention : unsigned { kDoomed = 1, kTooMuch = 2 };

  void begin_to_watch();
  void stop_keeping(const nessie::Error &reason);
  bool set_aside_all() noexcept;
  CachedRegion *find_locked(AddressRange range, std::uint64_t access) noexcept;
  nessie::Result<std::unique_ptr<Registration>> ask_registrar(AddressRange &range, AddressRange exact,
                                                              std::uint64_t access);
  bool make_room();
  void mark_pending() noexcept;
  void abandon_pending() noexcept;
  void keep(CachedRegion &region) noexcept;
  void trim() noexcept;
  bool too_much() const noexcept;
  void note_attention() noexcept;
  void give_back_under_locks(CachedRegion &region) noexcept;
  std::uint32_t end_use(CachedRegion &region) noexcept;
  void dispose_retired(CachedRegion &region) noexcept;
  std::size_t dispose_doomed() noexcept;

  Registrar &registrar_;
  const CacheLimits limits_;
  std::atomic<bool> keeps_;
  std::atomic<bool> watches_;
  std::mutex registrar_mutex_;
  mutable std::mutex mutex_;  ///< taken last
  RegionIndex index_;
  Pending pending_;
  CacheStatistics counted_;
  std::atomic<unsigned> attention_{0};  ///< of Attention
  bool closed_ = false;
  bool inherited_ = false;  ///< leases of the parent's may refer to it: it stays
};

/// All caches of the process, for fork: a child's caches are empty, and leave alone what its parent registered.
namespace cache_forks {
/// How many forks lie between this process and the first with a cache.
std::uint32_t generation() noexcept;
void add(CacheState &cache);
void remove(CacheState &cache) noexcept;
}  // namespace cache_forks

/// It belongs to the process that forked this one.
inline bool is_foreign(const CachedRegion &region) noexcept { return region.generation != cache_forks::generation(); }

}  // namespace nnti
