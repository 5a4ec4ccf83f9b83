// SPDX-License-Identifier: BSD-3-Clause
// Copying bytes at the machine's speed wherever they lie.
//
// Design notes. glibc copies blocks of more than about 2 KiB, and less than the second cache has, by `rep movsb`. Where
// the target begins up to 63 bytes further into its page than the source, AMD's processors (Zen 3 and later) move them
// at a third of the speed, as each read seems to depend on a write. That is the usual case here: what comes lies at the
// start of a page, behind the length of an array (4 bytes), and what it is copied to has come from malloc by mmap (16
// bytes into its page). Short pieces go by vector instructions, which do not mind.
//
// What a processor writes to memory that another one has read just before, as where a client encodes requests that its
// service decodes, it has to take from that one's cache line by line, and the next reader takes it back: 2 to 7 GB/s on
// AMD's processors (Zen). Stores past the caches do without both there: 11 to 16 GB/s. On Intel's (with 2 MiB of second
// cache) lines move from cache to cache at 10 GB/s, and by way of memory at 6.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

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

/// Of a cache.
inline constexpr std::size_t kLineBytes = 64;

namespace detail {
inline constinit thread_local bool is_read_elsewhere = false;
inline constexpr std::size_t kPastCachesFrom = std::size_t{16} << 10;
}  // namespace detail

/// Whether this is a processor on which that is faster.
inline bool past_caches_is_faster() {
#if defined(__x86_64__)
  static const bool is = __builtin_cpu_is("amd") != 0;
  return is;
#else
  return false;
#endif
}

/// While one lives, the thread's large copies, and arrays that it encodes (xdr::swap_copy), go past its processor's
/// caches: for what another one reads next. They nest.
class ReadElsewhere {
 public:
  explicit ReadElsewhere(bool is_so = true) { detail::is_read_elsewhere |= is_so; }
  ~ReadElsewhere() { detail::is_read_elsewhere = before_; }
  ReadElsewhere(const ReadElsewhere &) = delete;
  ReadElsewhere &operator=(const ReadElsewhere &) = delete;

 private:
  const bool before_ = detail::is_read_elsewhere;
};

/// Whether a copy of so many bytes goes past the caches now.
inline bool goes_past_caches(std::size_t size_bytes) {
  return size_bytes >= detail::kPastCachesFrom && detail::is_read_elsewhere;
}

/// Past the caches; `to` is where a line begins, and `size_bytes` a number of whole ones. To be followed by
/// end_of_lines() before anybody is told.
inline void copy_lines(std::byte *to, const std::byte *from, std::size_t size_bytes) {
#if defined(__x86_64__)
  for (std::size_t at = 0; at != size_bytes; at += sizeof(__m128i))
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + at)));
#else
  std::memcpy(to, from, size_bytes);
#endif
}
inline void end_of_lines() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// How many bytes there are before the next line begins.
inline std::size_t before_line(const void *at) {
  return (kLineBytes - reinterpret_cast<std::uintptr_t>(at) % kLineBytes) % kLineBytes;
}

/// At least a line.
inline void copy_past_caches(std::byte *to, const std::byte *from, std::size_t size_bytes) {
  const auto first = before_line(to), lines = (size_bytes - first) / kLineBytes * kLineBytes;
  std::memcpy(to, from, first);
  copy_lines(to + first, from + first, lines);
  end_of_lines();
  std::memcpy(to + first + lines, from + first + lines, size_bytes - first - lines);
}

/// As memcpy; of no bytes, the pointers may be null.
inline void copy_bytes(void *to, const void *from, std::size_t size_bytes) {
  if (goes_past_caches(size_bytes)) [[unlikely]]
    return copy_past_caches(static_cast<std::byte *>(to), static_cast<const std::byte *>(from), size_bytes);
  const auto piece = best_piece(to, from, size_bytes);
  auto *target = static_cast<std::byte *>(to);
  const auto *source = static_cast<const std::byte *>(from);
  for (std::size_t some; size_bytes != 0; size_bytes -= some, target += some, source += some) {
    some = std::min(piece, size_bytes);
    std::memcpy(target, source, some);
  }
}

}  // namespace nessie
