// SPDX-License-Identifier: BSD-3-Clause
// Copying bytes at the machine's speed wherever they lie.
//
// Design notes. glibc copies blocks of more than about 2 KiB, and less than the second cache has, by `rep movsb`. Where
// the target begins up to 63 bytes further into its page than the source, AMD's processors (Zen 3 and later) move them
// at a third of the speed, as each read seems to depend on a write. That is the usual case here: what comes lies at the
// start of a page, behind the length of an array (4 bytes), and what it is copied to has come from malloc by mmap (16
// bytes into its page). Short pieces go by vector instructions, which do not mind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nessie {

/// So many are copied at once everywhere.
inline constexpr std::size_t kShortCopy = 2048;

/// How many bytes are to be copied from `from` to `to` at once.
inline std::size_t best_piece(const void *to, const void *from, std::size_t size_bytes) {
  constexpr std::uintptr_t kPage = 4096, kTooNear = 64;
  constexpr std::size_t kLong = std::size_t{1} << 20;
  const auto behind = (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % kPage;
  return behind == 0 || behind >= kTooNear || size_bytes >= kLong ? size_bytes : std::min(size_bytes, kShortCopy);
}

/// As memcpy; of no bytes, the pointers may be null.
inline void copy_bytes(void *to, const void *from, std::size_t size_bytes) {
  const auto piece = best_piece(to, from, size_bytes);
  auto *target = static_cast<std::byte *>(to);
  const auto *source = static_cast<const std::byte *>(from);
  for (std::size_t some; size_bytes != 0; size_bytes -= some, target += some, source += some) {
    some = std::min(piece, size_bytes);
    std::memcpy(target, source, some);
  }
}

}  // namespace nessie
