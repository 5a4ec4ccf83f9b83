// SPDX-License-Identifier: BSD-3-Clause
// A region that peers may reach, by its key. The provider never exposes it: peers ask, and the owner transfers. Where
// the provider wants registered memory, the region is leased from the cache: once for as long as it lasts, so that it
// stays registered, and once for each piece of a transfer, for the memory may have changed beneath it.
#pragma once

#include "nnti/framed/memory.hpp"
#include "nnti/transports/ofi/fabric.hpp"

namespace nnti::ofi {

class Memory final : public framed::Memory {
 public:
  Memory(framed::Memories &memories, Fabric &fabric, const MemoryRegion &region)
      : framed::Memory(memories, region), fabric_(fabric) {}

  /// Has the region registered if that is needed, and kept if it can be. Errors as RegistrationCache::acquire().
  Status keep_registered();
  /// The registration of what is mapped at `part` of the region now; not valid: the provider needs none. Errors as
  /// RegistrationCache::acquire().
  Result<RegistrationCache::Lease> lease(std::span<std::byte> part);

 private:
  Fabric &fabric_;
  RegistrationCache::Lease kept_;
};

}  // namespace nnti::ofi
