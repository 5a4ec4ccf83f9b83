// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/mpi/memory.hpp"

#include "nnti/transports/mpi/transport.hpp"

namespace nnti::mpi {

Memory::Memory(MpiTransport &transport, const MemoryRegion &region)
    : transport_(transport), region_(region), key_(nessie::random_u64()) {
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

}  // namespace nnti::mpi
