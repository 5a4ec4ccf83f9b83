// SPDX-License-Identifier: BSD-3-Clause
// Memory that other processes can map: sealed memfds. Sealed, because whoever maps a file that another process may
// shrink can be killed by it (SIGBUS).
#pragma once

#include "base/fd.hpp"

#include <nessie/result.hpp>

#include <cstddef>
#include <span>

namespace nnti {

/// A mapping that unmaps itself.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void *base, std::size_t size_bytes) : base_(base), size_bytes_(size_bytes) {}
  Mapping(Mapping &&other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Mapping &operator=(Mapping &&other) noexcept;
  ~Mapping();

  bool valid() const { return base_ != nullptr; }
  std::byte *base() const { return static_cast<std::byte *>(base_); }
  std::span<std::byte> bytes() const { return {base(), size_bytes_}; }

 private:
  void *base_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// A memfd and our mapping of it.
struct SharedMemory {
  nessie::Fd fd;
  Mapping mapping;
};

enum class Peers { kMayWrite, kMayOnlyRead };

/// Zeroed memory of `size_bytes` (rounded up to pages). `peers` says whether those who get the descriptor can map it
/// for writing. kNoMemory.
nessie::Result<SharedMemory> make_shared_memory(const char *name, std::size_t size_bytes, Peers peers);

/// Makes the kernel provide all of its pages now.
void touch_pages(const Mapping &mapping);

enum class Access { kRead, kReadWrite };

/// Maps the first `size_bytes` of a descriptor that a peer sent. kBadMessage if it is not memory of that size sealed
/// against shrinking; kNoMemory.
nessie::Result<Mapping> map_shared_memory(int fd, std::size_t size_bytes, Access access);

}  // namespace nnti
