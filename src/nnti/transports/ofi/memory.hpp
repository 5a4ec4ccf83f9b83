// SPDX-License-Identifier: BSD-3-Clause
// A region that peers may reach, by its key. The provider never exposes it: peers ask, and the owner transfers.
#pragma once

#include "nnti/transport.hpp"
#include "nnti/transports/ofi/fabric.hpp"

namespace nnti::ofi {

class OfiTransport;

class Memory final : public TransportMemory {
 public:
  Memory(OfiTransport &transport, const MemoryRegion &region, MemoryKey local);
  ~Memory() override;
  Result<RemoteBuffer> describe_for(Connection &) override { return describe(); }
  RemoteBuffer describe() const override;

  std::uint64_t key() const { return key_; }
  std::span<std::byte> bytes() const { return region_.bytes; }
  Rights rights() const { return region_.rights; }
  void *descriptor() const { return local_.descriptor(); }

 private:
  OfiTransport &transport_;
  MemoryRegion region_;
  MemoryKey local_;  ///< for the provider's own access, where it needs that
  std::uint64_t key_;
};

}  // namespace nnti::ofi
