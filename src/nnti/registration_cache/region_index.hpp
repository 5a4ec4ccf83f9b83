// SPDX-License-Identifier: BSD-3-Clause
// The regions of a cache: by address, in order of use, and those that are on their way out. Nothing here allocates or
// deregisters, so that memory_changing() may run within malloc and free. Not thread-safe: the cache's `mutex` guards
// it.
#pragma once

#include "nnti/registration_cache/address_range.hpp"
#include "nnti/registration_cache/registrar.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace nnti {

/// Who uses a region, in one word, so that giving back needs no lock: the number of leases, and what has become of it.
inline constexpr std::uint32_t kDead = 1u << 31;    ///< never handed out again
inline constexpr std::uint32_t kUsers = kDead - 1;  ///< mask

struct CachedRegion {
  boost::intrusive::set_member_hook<> by_address;
  boost::intrusive::list_member_hook<> in_list;
  AddressRange range;
  std::uint64_t access = 0;
  std::unique_ptr<Registration> registration;
  std::atomic<std::uint32_t> state{0};
  std::uint32_t generation = 0;  ///< of the process that registered it
};

using RegionList = boost::intrusive::list<
    CachedRegion,
    boost::intrusive::member_hook<CachedRegion, boost::intrusive::list_member_hook<>, &CachedRegion::in_list>>;

/// Regions of one access never overlap.
class RegionIndex {
 public:
  /// The region that covers `range` for `access`, now the most recently used; null if there is none.
  CachedRegion *find(AddressRange range, std::uint64_t access) noexcept;
  /// What to register in order to have `range`: together with the regions that overlap it, and with those beside it
  /// that nobody uses and that are not larger than it (so that slices that are used one after another end in few
  /// regions, and no byte is registered more than about log2(slices) times).
  AddressRange merged(AddressRange range, std::uint64_t access) noexcept;
  /// Takes up a region; there is none that overlaps it.
  void insert(CachedRegion &region) noexcept;

  /// Takes out every region of any access that overlaps `range`; or of one access. Returns how many.
  std::size_t drop(AddressRange range) noexcept;
  std::size_t drop(AddressRange range, std::uint64_t access) noexcept;
  /// Takes out the least recently used region that nobody uses. False: there is none.
  bool drop_oldest_idle() noexcept;
  /// Takes out a region if nobody uses it, and it is not dead.
  bool drop_if_idle(CachedRegion &region) noexcept;
  /// Takes note of a region that is never to be found.
  void retire(CachedRegion &region) noexcept;
  /// Takes a retired region, of which the last user has gone, out of everything.
  void remove_retired(CachedRegion &region) noexcept { retired_.erase(retired_.iterator_to(region)); }
  bool has_retired() const noexcept { return !retired_.empty(); }

  /// Those that were taken out and have no users: to be deregistered, outside the lock.
  RegionList &doomed() noexcept { return doomed_; }

  std::size_t regions() const noexcept { return regions_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Order {
    using Key = std::pair<std::uint64_t, std::uintptr_t>;
    static Key key(const CachedRegion &region) { return {region.access, region.range.begin}; }
    bool operator()(const CachedRegion &a, const CachedRegion &b) const { return key(a) < key(b); }
    bool operator()(const CachedRegion &a, const Key &b) const { return key(a) < b; }
    bool operator()(const Key &a, const CachedRegion &b) const { return a < key(b); }
  };
  using Tree = boost::intrusive::set<
      CachedRegion,
      boost::intrusive::member_hook<CachedRegion, boost::intrusive::set_member_hook<>, &CachedRegion::by_address>,
      boost::intrusive::compare<Order>>;

  /// The first region of `access` that ends behind `address`.
  Tree::iterator first_behind(std::uintptr_t address, std::uint64_t access) noexcept;
  Tree::iterator drop_one(Tree::iterator at) noexcept;

  Tree tree_;
  RegionList by_use_;   ///< of the tree; the most recently used last
  RegionList retired_;  ///< dead, with users
  RegionList doomed_;   ///< dead, without
  std::size_t regions_ = 0, bytes_ = 0;
};

}  // namespace nnti
