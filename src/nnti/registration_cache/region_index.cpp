// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/region_index.hpp"

#include <algorithm>
#include <iterator>

namespace nnti {

namespace {

/// Whether a region that does not overlap `range` is taken up with it.
bool may_join(const CachedRegion &region, AddressRange range) {
  const bool touches = region.range.end == range.begin || region.range.begin == range.end;
  const bool idle = (region.state.load(std::memory_order_relaxed) & kUsers) == 0;
  return touches && idle && region.range.size_bytes() <= range.size_bytes();
}

}  // namespace

auto RegionIndex::first_behind(std::uintptr_t address, std::uint64_t access) noexcept -> Tree::iterator {
  auto next = tree_.upper_bound(Order::Key(access, address), Order());
  if (next == tree_.begin()) return next;
  auto before = std::prev(next);
  return before->access == access && before->range.end > address ? before : next;
}

CachedRegion *RegionIndex::find(AddressRange range, std::uint64_t access) noexcept {
  auto found = first_behind(range.begin, access);
  if (found == tree_.end() || found->access != access || !found->range.covers(range)) return nullptr;
  if (&by_use_.back() != &*found) by_use_.splice(by_use_.end(), by_use_, by_use_.iterator_to(*found));
  return &*found;
}

AddressRange RegionIndex::merged(AddressRange range, std::uint64_t access) noexcept {
  for (auto before = AddressRange{}; before != range;) {
    before = range;
    // From one byte in front of the range on, so that what ends where it begins is met as well.
    auto at = first_behind(range.begin - (range.begin > 0), access);
    for (; at != tree_.end() && at->access == access && at->range.begin <= range.end; ++at) {
      if (!at->range.overlaps(range) && !may_join(*at, range)) continue;
      range = {std::min(range.begin, at->range.begin), std::max(range.end, at->range.end)};
    }
  }
  return range;
}

void RegionIndex::insert(CachedRegion &region) noexcept {
  tree_.insert(region);
  by_use_.push_back(region);
  ++regions_;
  bytes_ += region.range.size_bytes();
}

auto RegionIndex::drop_one(Tree::iterator at) noexcept -> Tree::iterator {
  auto &region = *at;
  by_use_.erase(by_use_.iterator_to(region));
  --regions_;
  bytes_ -= region.range.size_bytes();
  auto next = tree_.erase(at);
  const auto before = region.state.fetch_or(kDead, std::memory_order_acq_rel);
  ((before & kUsers) == 0 ? doomed_ : retired_).push_back(region);
  return next;
}

std::size_t RegionIndex::drop(AddressRange range, std::uint64_t access) noexcept {
  std::size_t dropped = 0;
  for (auto at = first_behind(range.begin, access);
       at != tree_.end() && at->access == access && at->range.begin < range.end; ++dropped)
    at = drop_one(at);
  return dropped;
}

std::size_t RegionIndex::drop(AddressRange range) noexcept {
  std::size_t dropped = 0;
  for (auto at = tree_.begin(); at != tree_.end();) {
    const auto access = at->access;
    dropped += drop(range, access);
    at = tree_.upper_bound(Order::Key(access, kAllAddresses.end), Order());
  }
  return dropped;
}

bool RegionIndex::drop_oldest_idle() noexcept {
  for (auto &region : by_use_) {
    if ((region.state.load(std::memory_order_acquire) & kUsers) != 0) continue;
    drop_one(tree_.iterator_to(region));
    return true;
  }
  return false;
}

bool RegionIndex::drop_if_idle(CachedRegion &region) noexcept {
  if (region.state.load(std::memory_order_acquire) != 0) return false;
  drop_one(tree_.iterator_to(region));
  return true;
}

void RegionIndex::retire(CachedRegion &region) noexcept {
  region.state.fetch_or(kDead, std::memory_order_acq_rel);
  retired_.push_back(region);
}

}  // namespace nnti
