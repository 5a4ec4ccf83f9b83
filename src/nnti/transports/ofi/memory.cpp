// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/memory.hpp"

namespace nnti::ofi {

namespace {

/// What the provider does to the owner's memory: it is the source of what a peer may get, and the target of what it may
/// put. Memory that peers only read may be write-protected.
std::uint64_t local_access(Rights rights) {
  const auto may = [rights](Rights right) {
    return (static_cast<unsigned>(rights) & static_cast<unsigned>(right)) != 0;
  };
  return (may(Rights::kRemoteRead) ? FI_WRITE : 0) | (may(Rights::kRemoteWrite) ? FI_READ : 0);
}

}  // namespace

Status Memory::keep_registered() {
  auto *cache = fabric_.cache();
  const auto access = local_access(region().rights);
  if (cache == nullptr || !cache->keeps_registrations() || region().bytes.empty() || access == 0) return {};
  if (kept_.valid() && kept_.current()) return {};
  auto lease = cache->acquire(region().bytes, access);
  if (!lease.ok()) return lease.error();
  kept_ = lease->current() ? std::move(*lease) : RegistrationCache::Lease();
  return {};
}

Result<RegistrationCache::Lease> Memory::lease(std::span<std::byte> part) {
  auto *cache = fabric_.cache();
  if (cache == nullptr) return RegistrationCache::Lease();
  // The region as a whole, for the next piece to find it; but what is not kept need not be more than is used.
  if (auto status = keep_registered(); !status.ok()) return status.error();
  return cache->acquire(kept_.valid() ? region().bytes : part, local_access(region().rights));
}

}  // namespace nnti::ofi
