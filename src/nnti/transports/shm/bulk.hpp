// SPDX-License-Identifier: BSD-3-Clause
// Ways to move bulk data from and to another process: its mapped memory, or cross-memory attach (CMA).
#pragma once

#include "nnti/transport/allocation.hpp"
#include "nnti/transport/transport.hpp"
#include "nnti/transports/shm/layout.hpp"

#include <sys/types.h>

#include <unordered_map>

namespace nnti::shm {

/// Copies between our memory and `process`'s. kPeerLost: it is gone. kUnsupported: the kernel forbids it. kIo: the
/// memory there is not mapped (as the registration says it is); part of the bytes may have been moved.
Status cma_read(pid_t process, std::uint64_t address, std::span<std::byte> local);
Status cma_write(pid_t process, std::uint64_t address, std::span<const std::byte> local);

/// Whether CMA reaches the process that says it has `probe_value` at `probe_address`: tried, not guessed. If not, why.
Status cma_probe(pid_t process, std::uint64_t probe_address, std::uint64_t probe_value);

/// Our mappings of memory that one peer allocated for sharing. A mapping lives as long as its registration, and as
/// whoever looks at it.
class PeerMappings {
 public:
  /// Maps what the peer sent for `slot` and `key`. A bad descriptor is ignored: CMA or the relay serve instead.
  void add(const EndpointTable &table, std::uint32_t slot, std::uint64_t key, int fd);
  /// The mapping of the buffer, or null if it is not mapped here (for writing, if `to_write`).
  const std::shared_ptr<Mapping> *find(std::uint32_t slot, std::uint64_t key, std::uint64_t size_bytes,
                                       bool to_write) const;
  /// Drops the mappings whose registration has ended.
  void sweep(const EndpointTable &table);
  bool empty() const { return mappings_.empty(); }

 private:
  struct Entry {
    std::uint64_t key;
    bool writable;
    std::shared_ptr<Mapping> mapping;
  };
  std::unordered_map<std::uint32_t, Entry> mappings_;
  mutable const std::pair<const std::uint32_t, Entry> *last_ =
      nullptr;  ///< found; the next access often is to the same
};

}  // namespace nnti::shm
