// SPDX-License-Identifier: BSD-3-Clause
// A region that peers may reach, by its key: they ask, and the owner posts its side of the transfer.
#pragma once

#include "nnti/transport/transport.hpp"

namespace nnti::mpi {

class MpiTransport;

class Memory final : public TransportMemory {
 public:
  Memory(MpiTransport &transport, const MemoryRegion &region);
  ~Memory() override;
  Result<RemoteBuffer> describe_for(Connection &) override { return describe(); }
  RemoteBuffer describe() const override;

  std::uint64_t key() const { return key_; }
  const MemoryRegion &region() const { return region_; }

 private:
  MpiTransport &transport_;
  MemoryRegion region_;
  std::uint64_t key_;
};

}  // namespace nnti::mpi
