// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/inproc/memory.hpp"

namespace nnti::inproc {

InprocMemory::InprocMemory(std::shared_ptr<Port> port, const MemoryRegion &region) : port_(std::move(port)) {
  auto registration = std::make_shared<Registration>();
  registration->key = nessie::random_u64();
  registration->bytes = region.bytes;
  registration->rights = region.rights;
  description_.key = registration->key;
  description_.size_bytes = region.bytes.size();
  description_.rights = region.rights;
  description_.slot = port_->add_registration(std::move(registration));
}

InprocMemory::~InprocMemory() { port_->end_registration(description_.slot); }

Result<RemoteBuffer> InprocMemory::describe_for(Connection &) { return description_; }

}  // namespace nnti::inproc
