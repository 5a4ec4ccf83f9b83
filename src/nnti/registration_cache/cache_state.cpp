// SPDX-License-Identifier: BSD-3-Clause
// Design notes. Two locks. `mutex` guards the index and is held for a lookup or a change of links only: nothing is
// allocated and nobody is called under it, so that memory_changing(), which takes it, may run within malloc and free.
// `registrar_mutex`, taken first, is held while the registrar works, which allocates as it likes.
//
// Memory that changes while it is being registered: the range is noted as pending before the registrar is called. A
// change that begins meanwhile marks it; one that had begun before is still under way (memory_events::changing). Either
// way the registration is good for its lease, but is not kept.
//
// Giving back takes no lock, but for the last user of a dead region, and where something has to be deregistered.
#include "nnti/registration_cache/cache_state.hpp"

#include <base/log.hpp>

namespace nnti {

using nessie::Code;
using nessie::Error;
using nessie::Result;

CacheState::CacheState(Registrar &registrar, CacheLimits limits)
    : registrar_(registrar), limits_(limits), keeps_(!limits.keep_nothing()), watches_(false) {}

void CacheState::check_watch() {
  if (!watches_.load(std::memory_order_acquire) || memory_events::intact()) [[likely]]
    return;
  if (!keeps_.load(std::memory_order_relaxed)) return;
  if (auto status = memory_events::repair(); !status.ok()) stop_keeping(status.error());
}

void CacheState::stop_keeping(const Error &reason) {
  if (!set_aside_all()) return;
  nessie::log::warning("registered memory is not kept, but registered for each transfer: {}", reason.message);
  serve_attention();
}

/// False: another thread has done so.
bool CacheState::set_aside_all() noexcept {
  std::lock_guard lock(mutex_);
  index_.drop(kAllAddresses);
  note_attention();
  return keeps_.exchange(false);
}

/// The caller holds the registrar's mutex.
void CacheState::begin_to_watch() {
  if (watches_ || !keeps() || registrar_.follows_mapping()) return;
  auto status = memory_events::watch();
  if (status.ok()) status = memory_events::subscribe(*this);
  watches_.store(status.ok(), std::memory_order_release);
  if (status.ok() || !set_aside_all()) return;
  nessie::log::warning("registered memory is not kept, but registered for each transfer: {}", status.error().message);
}

CachedRegion *CacheState::find(AddressRange range, std::uint64_t access) noexcept {
  std::lock_guard lock(mutex_);
  return find_locked(range, access);
}

CachedRegion *CacheState::find_locked(AddressRange range, std::uint64_t access) noexcept {
  auto *region = index_.find(range, access);
  if (region == nullptr) return nullptr;
  region->state.fetch_add(1, std::memory_order_relaxed);
  ++counted_.hits;
  return region;
}

Result<CachedRegion *> CacheState::register_new(AddressRange range, std::uint64_t access) {
  std::lock_guard serial(registrar_mutex_);
  begin_to_watch();
  auto region = std::make_unique<CachedRegion>();
  region->access = access;
  region->generation = cache_forks::generation();
  {
    std::lock_guard lock(mutex_);
    if (auto *found = find_locked(range, access)) return found;  // another thread was quicker
    pending_ = {keeps() ? index_.merged(range, access) : range, false};
  }
  region->range = pending_.range;
  if (watches_ && memory_events::changing(pending_.range)) mark_pending();
  auto made = ask_registrar(region->range, range, access);
  if (!made.ok()) return abandon_pending(), made.error();
  region->registration = std::move(*made);
  auto *kept = region.release();
  keep(*kept);
  dispose_doomed();
  return kept;
}

/// First the pages together with their neighbours', then alone, then with all the room that there can be. `range` is
/// what was registered.
Result<std::unique_ptr<Registration>> CacheState::ask_registrar(AddressRange &range, AddressRange exact,
                                                                std::uint64_t access) {
  auto made = registrar_.register_pages(range, access);
  if (!made.ok() && range != exact) {
    range = exact;
    made = registrar_.register_pages(range, access);
  }
  if (made.ok() || made.code() != Code::kNoMemory || !make_room()) return made;
  return registrar_.register_pages(range, access);
}

/// Deregisters all that nobody uses; false: there was nothing. The caller holds the registrar's mutex.
bool CacheState::make_room() {
  {
    std::lock_guard lock(mutex_);
    while (index_.drop_oldest_idle()) ++counted_.evictions;
  }
  return dispose_doomed() > 0;
}

void CacheState::mark_pending() noexcept {
  std::lock_guard lock(mutex_);
  pending_.changed = true;
}

void CacheState::abandon_pending() noexcept {
  std::lock_guard lock(mutex_);
  pending_ = {};
}

/// The caller holds the registrar's mutex.
void CacheState::keep(CachedRegion &region) noexcept {
  std::lock_guard lock(mutex_);
  ++counted_.misses;
  region.state.store(1, std::memory_order_relaxed);
  if (keeps() && !pending_.changed) {
    counted_.merges += index_.drop(region.range, region.access);
    index_.insert(region);
    trim();
  } else {
    index_.retire(region);
  }
  pending_ = {};
}

bool CacheState::too_much() const noexcept {
  return index_.regions() > limits_.regions || index_.bytes() > limits_.bytes;
}

/// The caller holds the mutex. What is in use stays, until it is given back.
void CacheState::trim() noexcept {
  while (too_much() && index_.drop_oldest_idle()) ++counted_.evictions;
  note_attention();
}

/// The caller holds the mutex.
void CacheState::note_attention() noexcept {
  const unsigned now = (index_.doomed().empty() ? 0u : +kDoomed) | (too_much() ? +kTooMuch : 0u);
  attention_.store(now, std::memory_order_relaxed);
}

void CacheState::memory_changing(AddressRange range) noexcept {
  std::lock_guard lock(mutex_);
  if (pending_.range.overlaps(range)) pending_.changed = true;
  counted_.invalidations += index_.drop(range);
  note_attention();
}

void CacheState::give_back(CachedRegion &region) noexcept {
  if (is_foreign(region)) return;
  // Nothing of this cache may be touched once the use has ended, unless the region is dead (then it holds the cache),
  // or the use ends under the locks.
  if (attention_.load(std::memory_order_relaxed) != 0) return give_back_under_locks(region);
  const auto before = region.state.fetch_sub(1, std::memory_order_acq_rel);
  if (before == (kDead | 1)) dispose_retired(region);
}

void CacheState::give_back_under_locks(CachedRegion &region) noexcept {
  std::unique_lock serial(registrar_mutex_);
  const auto before = end_use(region);
  dispose_doomed();
  serial.unlock();
  if (before == (kDead | 1)) dispose_retired(region);
}

/// With more kept than there should be, what is given back goes at once.
std::uint32_t CacheState::end_use(CachedRegion &region) noexcept {
  std::lock_guard lock(mutex_);
  const auto before = region.state.fetch_sub(1, std::memory_order_acq_rel);
  if (too_much() && index_.drop_if_idle(region)) ++counted_.evictions;
  return before;
}

void CacheState::dispose_retired(CachedRegion &region) noexcept {
  bool last = false;
  {
    std::lock_guard serial(registrar_mutex_);
    {
      std::lock_guard lock(mutex_);
      index_.remove_retired(region);
      last = closed_ && !index_.has_retired() && !inherited_;
    }
    delete &region;
  }
  if (!last) return;
  cache_forks::remove(*this);
  delete this;
}

void CacheState::serve_attention() noexcept {
  if ((attention_.load(std::memory_order_relaxed) & kDoomed) == 0) [[likely]]
    return;
  std::lock_guard serial(registrar_mutex_);
  dispose_doomed();
}

/// Deregisters what nobody can use any more; returns how many. The caller holds the registrar's mutex.
std::size_t CacheState::dispose_doomed() noexcept {
  RegionList doomed;
  {
    std::lock_guard lock(mutex_);
    doomed.swap(index_.doomed());
    note_attention();
  }
  std::size_t disposed = 0;
  for (; !doomed.empty(); ++disposed) doomed.pop_front_and_dispose([](auto *region) { delete region; });
  return disposed;
}

void CacheState::clear() noexcept {
  std::lock_guard serial(registrar_mutex_);
  {
    std::lock_guard lock(mutex_);
    while (index_.drop_oldest_idle()) {}
  }
  dispose_doomed();
}

CacheStatistics CacheState::statistics() const noexcept {
  std::lock_guard lock(mutex_);
  auto all = counted_;
  all.regions = index_.regions();
  all.bytes = index_.bytes();
  return all;
}

void CacheState::close() noexcept {
  if (watches_) memory_events::unsubscribe(*this);
  bool unused = false;
  {
    std::lock_guard serial(registrar_mutex_);
    {
      std::lock_guard lock(mutex_);
      index_.drop(kAllAddresses);
      closed_ = true;
    }
    dispose_doomed();
    std::lock_guard lock(mutex_);
    unused = !index_.has_retired() && !inherited_;
  }
  if (!unused) return;
  cache_forks::remove(*this);
  delete this;
}

}  // namespace nnti
