// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nnti/transports/shm/transport_impl.hpp"

namespace nnti::shm {

class ShmMemory final : public TransportMemory {
 public:
  ShmMemory(ShmTransport &transport, const RemoteBuffer &description, int memfd)
      : transport_(transport), description_(description), memfd_(memfd) {}
  ~ShmMemory() override;
  Result<RemoteBuffer> describe_for(Connection &peer) override;
  void keep() override { kept_ = true; }
  RemoteBuffer describe() const override { return description_; }

 private:
  ShmTransport &transport_;
  RemoteBuffer description_;
  int memfd_;
  bool kept_ = false;
};

}  // namespace nnti::shm
