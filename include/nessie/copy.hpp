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
// service decodes, it takes from that one's cache line by line before it overwrites it, and the next reader takes it
// back. Two ways around that, from whole lines in the first cache:
//   - AMD's processors (Zen): stores past the caches, 11 to 16 GB/s instead of 2 to 7;
//   - others: `rep movsb`, which takes lines without what is in them. On Intel's (2 MiB of second cache), with pieces
//     of 128 KiB under way, 15 GB/s, instead of 5; past the caches, 10.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace nessie {

/// Bytes that every processor copies at full speed in one piece, wherever they lie.
inline constexpr std::size_t kShortCopy = 2048;

/// How many bytes are to be copied from `from` to `to` at once.
inline std::size_t best_piece(const void *to, const void *from, std::size_t size_bytes) {
  constexpr std::uintptr_t kPage = 4096, kTooNear = 64;
  constexpr std::size_t kLong = std::size_t{1} << 20;
  const auto behind = (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % kPage;
  return behind == 0 || behind >= kTooNear || size_bytes >= kLong ? size_bytes : std::min(size_bytes, kShortCopy);
}

/// The size of a line of the processor's caches.
inline constexpr std::size_t kLineBytes = 64;

namespace detail {
inline constinit thread_local bool is_read_elsewhere = false;
/// Whether this processor copies for another one by storing past its caches; otherwise it pushes lines out of them.
inline bool stores_past_caches() {
#if defined(__x86_64__)
  static const bool does = __builtin_cpu_is("amd") != 0;
  return does;
#else
  return false;
#endif
}
/// The smallest copy for which either way pays.
inline std::size_t least_elsewhere() { return std::size_t{stores_past_caches() ? 16u : 4u} << 10; }
}  // namespace detail

/// While one lives, the thread's large copies, and arrays that it encodes (xdr::swap_copy), are made for another
/// processor, which reads them next. They nest.
class ReadElsewhere {
 public:
  explicit ReadElsewhere(bool is_so = true) { detail::is_read_elsewhere |= is_so; }
  ~ReadElsewhere() { detail::is_read_elsewhere = before_; }
  ReadElsewhere(const ReadElsewhere &) = delete;
  ReadElsewhere &operator=(const ReadElsewhere &) = delete;

 private:
  const bool before_ = detail::is_read_elsewhere;
};

/// Whether a copy of so many bytes is now.
inline bool is_for_elsewhere(std::size_t size_bytes) {
  return detail::is_read_elsewhere && size_bytes >= detail::least_elsewhere();
}

/// For elsewhere; `to` is where a line begins, and `size_bytes` a number of whole ones. To be followed by
/// end_of_lines() before anybody is told.
inline void copy_lines(std::byte *to, const std::byte *from, std::size_t size_bytes) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (!detail::stores_past_caches()) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size_bytes) : : "memory");
    return;
  }
#endif
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
inline void copy_for_elsewhere(std::byte *to, const std::byte *from, std::size_t size_bytes) {
  const auto first = before_line(to), lines = (size_bytes - first) / kLineBytes * kLineBytes;
  std::memcpy(to, from, first);
  copy_lines(to + first, from + first, lines);
  end_of_lines();
  std::memcpy(to + first + lines, from + first + lines, size_bytes - first - lines);
}

/// As memcpy; of no bytes, the pointers may be null.
inline void copy_bytes(void *to, const void *from, std::size_t size_bytes) {
  if (is_for_elsewhere(size_bytes)) [[unlikely]]
    return copy_for_elsewhere(static_cast<std::byte *>(to), static_cast<const std::byte *>(from), size_bytes);
  const auto piece = best_piece(to, from, size_bytes);
  auto *target = static_cast<std::byte *>(to);
  const auto *source = static_cast<const std::byte *>(from);
  for (std::size_t some; size_bytes != 0; size_bytes -= some, target += some, source += some) {
    some = std::min(piece, size_bytes);
    std::memcpy(target, source, some);
  }
}

}  // namespace nessie
