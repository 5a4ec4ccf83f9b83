// SPDX-License-Identifier: BSD-3-Clause
// A region that peers may reach, by its key. The provider never exposes it: peers ask, and the owner transfers. Where
// the provider wants registered memory, the region is leased from the cache: once for as long as it lasts, so that it
// stays registered, and once for each piece of a transfer, for the memory may have changed beneath it.
#pragma once

#include "nnti/transport/transport.hpp"
#include "nnti/transports/ofi/fabric.hpp"
#include "nnti/transports/ofi/wire.hpp"

namespace nnti::ofi {

class OfiTransport;

class Memory final : public TransportMemory {
 public:
  Memory(OfiTransport &transport, const MemoryRegion &region);
  ~Memory() override;
  Result<RemoteBuffer> describe_for(Connection &) override { return describe(); }
  RemoteBuffer describe() const override;

  std::uint64_t key() const { return key_; }
  std::span<std::byte> bytes() const { return region_.bytes; }
  Rights rights() const { return region_.rights; }
  /// Has the region registered if that is needed, and kept if it can be. Errors as RegistrationCache::acquire().
  Status keep_registered();
  /// The registration of what is mapped at `part` of the region now; not valid: the provider needs none. Errors as
  /// RegistrationCache::acquire().
  Result<RegistrationCache::Lease> lease(std::span<std::byte> part);

 private:
  OfiTransport &transport_;
  MemoryRegion region_;
  RegistrationCache::Lease kept_;
  std::uint64_t key_;
};

/// Whether a peer may have what its get or put asks for: of no buffer (null), or of this one.
Code check(const Memory *memory, const FrameHeader &request);

}  // namespace nnti::ofi
