// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/memory.hpp"

#include "nnti/transports/ofi/transport.hpp"

namespace nnti::ofi {

Memory::Memory(OfiTransport &transport, const MemoryRegion &region, MemoryKey local)
    : transport_(transport), region_(region), local_(std::move(local)), key_(nessie::random_u64()) {
  transport_.add_memory(*this);
}

Memory::~Memory() { transport_.remove_memory(*this); }

RemoteBuffer Memory::describe() const {
  RemoteBuffer remote;
  remote.key = key_;
  remote.size_bytes = region_.bytes.size();
  remote.rights = region_.rights;
  return remote;
}

}  // namespace nnti::ofi
