// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nnti/transports/inproc/port.hpp"

namespace nnti::inproc {

class InprocMemory final : public TransportMemory {
 public:
  InprocMemory(std::shared_ptr<Port> port, const MemoryRegion &region);
  ~InprocMemory() override;
  Result<RemoteBuffer> describe_for(Connection &peer) override;
  RemoteBuffer describe() const override { return description_; }

 private:
  std::shared_ptr<Port> port_;
  RemoteBuffer description_;
};

}  // namespace nnti::inproc
