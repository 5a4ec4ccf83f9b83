// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/registration_cache.hpp"

#include "nnti/registration_cache/cache_state.hpp"

namespace nnti {

using nessie::Code;
using nessie::Error;
using nessie::Result;

Result<CacheLimits> CacheLimits::from(const nessie::Config &config) {
  CacheLimits limits;
  const auto on = config.get_bool("nnti.registration_cache", true);
  if (!on.ok()) return on.error();
  const auto regions = config.get_int("nnti.registration_cache.regions", static_cast<std::int64_t>(limits.regions));
  if (!regions.ok()) return regions.error();
  const auto mib = config.get_int("nnti.registration_cache.mib", static_cast<std::int64_t>(limits.bytes >> 20));
  if (!mib.ok()) return mib.error();
  constexpr std::int64_t kMostMib = std::int64_t{1} << 40;
  if (*regions < 0 || *mib < 0 || *mib > kMostMib)
    return Error{Code::kInvalidArgument,
                 "nnti.registration_cache.regions and nnti.registration_cache.mib must not be negative, nor beyond "
                 "2^40 MiB; 0 keeps nothing"};
  limits.regions = static_cast<std::size_t>(*regions);
  limits.bytes = static_cast<std::size_t>(*mib) << 20;
  if (!*on) limits.regions = 0;
  return limits;
}

// --- the cache --------------------------------------------------------------------------------------------------------

RegistrationCache::RegistrationCache(Registrar &registrar, CacheLimits limits)
    : state_(new CacheState(registrar, limits)) {
  cache_forks::add(*state_);
}

RegistrationCache::~RegistrationCache() { state_->close(); }

Result<RegistrationCache::Lease> RegistrationCache::acquire(std::span<const std::byte> memory, std::uint64_t access) {
  const auto range = pages_of(reinterpret_cast<std::uintptr_t>(memory.data()), memory.size());
  if (range.empty()) return Error{Code::kInvalidArgument, "no memory to register: the range is empty"};
  state_->check_watch();
  auto *region = state_->find(range, access);
  if (region == nullptr) {
    auto made = state_->register_new(range, access);
    if (!made.ok()) return made.error();
    region = *made;
  }
  state_->serve_attention();
  return Lease(*state_, *region);
}

void RegistrationCache::collect() { state_->serve_attention(); }

void RegistrationCache::clear() { state_->clear(); }

CacheStatistics RegistrationCache::statistics() const { return state_->statistics(); }

bool RegistrationCache::keeps_registrations() const { return state_->keeps(); }

// --- leases -----------------------------------------------------------------------------------------------------------

RegistrationCache::Lease &RegistrationCache::Lease::operator=(Lease &&other) noexcept {
  if (this == &other) return *this;
  reset();
  state_ = std::exchange(other.state_, nullptr);
  region_ = std::exchange(other.region_, nullptr);
  return *this;
}

Registration &RegistrationCache::Lease::registration() const { return *region_->registration; }

AddressRange RegistrationCache::Lease::range() const { return region_->range; }

bool RegistrationCache::Lease::current() const {
  return (region_->state.load(std::memory_order_acquire) & kDead) == 0 && !is_foreign(*region_);
}

void RegistrationCache::Lease::reset() noexcept {
  auto *region = std::exchange(region_, nullptr);
  auto *state = std::exchange(state_, nullptr);
  if (region != nullptr) state->give_back(*region);
}

}  // namespace nnti
