// SPDX-License-Identifier: BSD-3-Clause
// What a registration cache is made for: a protection domain that registers memory; and how much of it is kept.
#pragma once

#include "nnti/registration_cache/address_range.hpp"

#include <base/config.hpp>
#include <nessie/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace nnti {

/// Memory that a protection domain knows. Dropping it deregisters.
class Registration {
 public:
  virtual ~Registration() = default;
};

/// What registers memory: a protection domain, such as libfabric's domain. Never called from within malloc, free or
/// munmap, and by one thread at a time; which one is up to who calls acquire(), collect(), drops a lease or the cache.
class Registrar {
 public:
  virtual ~Registrar() = default;
  /// Registers the pages of `range`, all of them mapped as far as is known, for `access` (the registrar's own bits).
  /// kNoMemory: the domain is full; the cache then drops what nobody uses, and asks once more.
  virtual nessie::Result<std::unique_ptr<Registration>> register_pages(AddressRange range, std::uint64_t access) = 0;
  /// Whether registrations go on to be right when the application maps other memory at the same addresses (on-demand
  /// paging, for example). The process's memory is then not watched for this registrar's sake.
  virtual bool follows_mapping() const { return false; }
};

struct CacheLimits {
  std::size_t regions = 1024;
  std::size_t bytes = std::size_t{4} << 30;

  /// Nothing is kept then: a registration goes with its last lease.
  bool keep_nothing() const { return regions == 0 || bytes == 0; }
  /// The settings nnti.registration_cache, nnti.registration_cache.regions and .mib. kInvalidArgument.
  static nessie::Result<CacheLimits> from(const nessie::Config &config);
};

struct CacheStatistics {
  std::uint64_t hits = 0, misses = 0;
  std::uint64_t evictions = 0;      ///< for the limits' sake, or because the domain was full
  std::uint64_t invalidations = 0;  ///< because the memory changed
  std::uint64_t merges = 0;         ///< taken up into a larger registration
  std::size_t regions = 0;          ///< kept at present, in use or not
  std::size_t bytes = 0;
};

}  // namespace nnti
