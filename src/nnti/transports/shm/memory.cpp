// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/memory.hpp"

namespace nnti::shm {

ShmMemory::~ShmMemory() {
  if (!kept_) transport_.end_registration(description_, memfd_ >= 0);
}

Result<RemoteBuffer> ShmMemory::describe_for(Connection &peer) {
  if (memfd_ >= 0) static_cast<ShmConnection &>(peer).announce(description_, memfd_);
  return description_;
}

}  // namespace nnti::shm
