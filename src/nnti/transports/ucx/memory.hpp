// SPDX-License-Identifier: BSD-3-Clause
// A region that peers may reach, by its key. UCX never exposes it: peers ask, and the owner checks.
#pragma once

#include "nnti/transport/transport.hpp"

namespace nnti::ucx {

class UcxTransport;

class Memory final : public TransportMemory {
 public:
  Memory(UcxTransport &transport, const MemoryRegion &region);
  ~Memory() override;
  Result<RemoteBuffer> describe_for(Connection &) override { return describe(); }
  RemoteBuffer describe() const override;

  std::uint64_t key() const { return key_; }
  const MemoryRegion &region() const { return region_; }
  /// Whether a peer may reach `length` bytes at `offset` with the right `needed`: kOk, kRefused, kOutOfRange.
  Code check(Rights needed, std::uint64_t offset, std::uint64_t length) const;

 private:
  UcxTransport &transport_;
  MemoryRegion region_;
  std::uint64_t key_;
};

}  // namespace nnti::ucx
