// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/memory.hpp"

#include "nnti/transport/registration_check.hpp"
#include "nnti/transports/ucx/transport.hpp"

namespace nnti::ucx {

Memory::Memory(UcxTransport &transport, const MemoryRegion &region)
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

Code Memory::check(Rights needed, std::uint64_t offset, std::uint64_t length) const {
  return check_access(region_.bytes.size(), region_.rights, offset, length, needed).code();
}

}  // namespace nnti::ucx
