// SPDX-License-Identifier: BSD-3-Clause
// The registration cache: memory is registered with the network when it is first used (lazy registration) and stays
// registered afterwards (lazy deregistration), until something else needs the room or the memory itself goes.
// uGNI network module paper, sections 2 to 4 (uDREG).
//
// Threads: a cache, and leases of it, may be used by all threads of the process at once.
#pragma once

#include "nnti/registration_cache/registrar.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace nnti {

class CacheState;
struct CachedRegion;

class RegistrationCache {
 public:
  /// A registration in use; it lives at least as long as this. Moves, does not copy.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease &&other) noexcept
        : state_(std::exchange(other.state_, nullptr)), region_(std::exchange(other.region_, nullptr)) {}
    Lease &operator=(Lease &&other) noexcept;
    ~Lease() { reset(); }

    bool valid() const { return region_ != nullptr; }
    /// What the registrar made.
    Registration &registration() const;
    template <class T> T &as() const { return static_cast<T &>(registration()); }
    /// The pages that are registered: at least those of the memory asked for.
    AddressRange range() const;
    /// Whether the next acquire() of this memory would find this registration. False: the memory changed under it (or
    /// nothing is kept); who holds a lease for long acquires anew.
    bool current() const;
    /// Ends the use. The registration stays in the cache, or goes.
    void reset() noexcept;

   private:
    friend class RegistrationCache;
    Lease(CacheState &state, CachedRegion &region) : state_(&state), region_(&region) {}
    CacheState *state_ = nullptr;
    CachedRegion *region_ = nullptr;
  };

  /// One for each registrar, which is borrowed, and outlives the cache and its leases.
  explicit RegistrationCache(Registrar &registrar, CacheLimits limits = {});
  /// Deregisters everything but what is still leased; that goes with its last lease.
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache &) = delete;
  RegistrationCache &operator=(const RegistrationCache &) = delete;

  /// A registration of at least the pages of `memory`, for exactly `access`. Most times it is there already: that costs
  /// one short lock, no allocation and no system call. `memory` must stay mapped while the lease is used for transfers;
  /// should it not, nothing worse happens than that those transfers reach memory that the process has given back.
  /// kInvalidArgument: `memory` is empty. kNoMemory: the registrar's domain is full, even without what nobody uses.
  /// Otherwise as the registrar says.
  nessie::Result<Lease> acquire(std::span<const std::byte> memory, std::uint64_t access);

  /// Deregisters what has become useless since (memory that is gone cannot be deregistered from within free()).
  /// acquire() does so too; for who has not called it for a while. Cheap if there is nothing.
  void collect();
  /// Deregisters everything that nobody uses.
  void clear();

  CacheStatistics statistics() const;
  /// Whether registrations are kept at all. False: the limits say no, or the process's memory cannot be watched (known
  /// after the first acquire(), and logged).
  bool keeps_registrations() const;

 private:
  CacheState *state_;
};

}  // namespace nnti
