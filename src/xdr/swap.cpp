// SPDX-License-Identifier: BSD-3-Clause
// Design notes. A kernel shuffles vectors of 64 bytes (one register, two or four) and leaves what remains to single
// slots. Stores across cache lines are the dear part:
//   - where the destination is 16-byte aligned, as what malloc() returns is, a first vector is followed by aligned ones
//     which overlap it; the pattern moves along, which shuffles within 16 bytes allow;
//   - an array in a message comes behind a count of four bytes, never so aligned: AVX-512 puts each aligned vector
//     together from two swapped ones, a third faster in the first cache;
//   - what is larger than the first cache is fetched ahead, the destination too: without that, such stores halve the
//     bandwidth; with it, they are as fast as aligned ones. Stores past the caches win little over that, and
//     more only while others keep the memory busy; whoever uses the message next would have to fetch it again.
// Where that is another processor (nessie::ReadElsewhere), it is whole lines that win much, whatever the kernel: it
// swaps pieces in the first cache.
#include <xdr/swap.hpp>

#include <nessie/copy.hpp>
#include <xdr/traits.hpp>

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace xdr {
namespace {

/// What is to be done. Loops work on a copy that nobody else can reach: writing bytes does not change it.
struct Swap {
  std::byte *to;
  const std::byte *from;
  std::size_t size;
  const SwapPattern *pattern;
  std::size_t phase = 0;  ///< of the pattern, in bytes: less than its period

  void advance(std::size_t bytes) {
    skip(bytes);
    phase += bytes;
    if (phase >= pattern->period()) phase -= pattern->period();
  }
  /// Over whole periods.
  void skip(std::size_t bytes) {
    to += bytes;
    from += bytes;
    size -= bytes;
  }
};

template <class Word> void swap_one(std::byte *to, const std::byte *from, int turn = 0) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  word = std::rotl(detail::swap(word), turn);
  std::memcpy(to, &word, sizeof word);
}

/// Slot by slot.
void swap_slots(Swap swap) {
  while (swap.size >= SwapPattern::kSlotBytes) {
    swap_one<std::uint64_t>(swap.to, swap.from, swap.pattern->is_wide(swap.phase) ? 0 : 32);
    swap.advance(SwapPattern::kSlotBytes);
  }
  if (swap.size != 0) swap_one<std::uint32_t>(swap.to, swap.from);
}

/// Compilers make vectors of this where they can.
template <class Word> void swap_words(const Swap &swap) {
  for (std::size_t at = 0; at + sizeof(Word) <= swap.size; at += sizeof(Word))
    swap_one<Word>(swap.to + at, swap.from + at);
}

void swap_portably(std::byte *to, const std::byte *from, std::size_t size, const SwapPattern &pattern) {
  if constexpr (std::endian::native == std::endian::big) {
    std::memcpy(to, from, size);
    return;
  }
  Swap swap{to, from, size, &pattern};
  if (&pattern == &kWordsPattern)
    swap_words<std::uint32_t>(swap);
  else if (&pattern == &kDoubleWordsPattern)
    swap_words<std::uint64_t>(swap);
  else
    swap_slots(swap);
}

#if defined(__x86_64__)

constexpr std::size_t kVector = SwapPattern::kVectorBytes, kFour = 4 * kVector;
constexpr std::size_t kFetchFrom = 24 << 10, kFetchAhead = 1 << 10;

/// Up to there, four vectors are followed by others to be fetched ahead.
std::size_t end_of_fetching(const Swap &swap) { return swap.size < kFetchFrom ? 0 : swap.size - kFour - kFetchAhead; }

[[gnu::always_inline]] inline void fetch_vector(const Swap &swap, std::size_t at) {
  __builtin_prefetch(swap.from + at + kFetchAhead);
  __builtin_prefetch(swap.to + at + kFetchAhead);
}
[[gnu::always_inline]] inline void fetch_four(const Swap &swap, std::size_t at) {
  for (std::size_t i = 0; i < kFour; i += kVector) fetch_vector(swap, at + i);
}

/// The bytes before the destination's first boundary of a vector, where steps of 16 bytes reach it; 0: there is none,
/// or it is not worth it.
std::size_t before_boundary(const Swap &swap) {
  const auto beyond = reinterpret_cast<std::uintptr_t>(swap.to) % kVector;
  return swap.size < 2 * kFour || beyond == 0 || beyond % 16 != 0 ? 0 : kVector - beyond;
}

/// `kFirst` does one vector; `kSame`, where one shuffle is that of all, and `kAny` do all whole ones.
template <void (*kFirst)(const Swap &), void (*kSame)(Swap &), void (*kAny)(Swap &)>
void swap_vectors(std::byte *to, const std::byte *from, std::size_t size, const SwapPattern &pattern) {
  Swap swap{to, from, size, &pattern};
  if (const auto skip = before_boundary(swap); skip != 0) {
    kFirst(swap);
    swap.advance(skip);
  }
  if (pattern.period() == kVector)  // NOLINT(bugprone-branch-clone): SSSE3 has one for both
    kSame(swap);
  else
    kAny(swap);
  swap_slots(swap);
}

// --- SSSE3 ----------------------------------------------------------------------------------------------------------

#define NESSIE_SSSE3 [[gnu::target("ssse3")]]

NESSIE_SSSE3 inline __m128i load16(const void *from) { return _mm_loadu_si128(static_cast<const __m128i *>(from)); }
NESSIE_SSSE3 inline void shuffle16(std::byte *to, const std::byte *from, __m128i shuffle) {
  _mm_storeu_si128(reinterpret_cast<__m128i *>(to), _mm_shuffle_epi8(load16(from), shuffle));
}
NESSIE_SSSE3 void first_ssse3(const Swap &swap) {
  for (std::size_t i = 0; i < kVector; i += 16)
    shuffle16(swap.to + i, swap.from + i, load16(swap.pattern->shuffle(swap.phase) + i));
}
NESSIE_SSSE3 void any_ssse3(Swap &all) {
  auto swap = all;
  for (; swap.size >= kVector; swap.advance(kVector)) {
    if (swap.size > kFetchFrom) fetch_vector(swap, 0);
    first_ssse3(swap);
  }
  all = swap;
}

// --- AVX2 -----------------------------------------------------------------------------------------------------------

#define NESSIE_AVX2 [[gnu::target("avx2")]]

NESSIE_AVX2 inline __m256i load32(const void *from) { return _mm256_loadu_si256(static_cast<const __m256i *>(from)); }
NESSIE_AVX2 inline void shuffle32(std::byte *to, const std::byte *from, __m256i shuffle) {
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), _mm256_shuffle_epi8(load32(from), shuffle));
}
NESSIE_AVX2 void first_avx2(const Swap &swap) {
  const auto *shuffle = swap.pattern->shuffle(swap.phase);
  shuffle32(swap.to, swap.from, load32(shuffle));
  shuffle32(swap.to + 32, swap.from + 32, load32(shuffle + 32));
}
NESSIE_AVX2 void any_avx2(Swap &all) {
  auto swap = all;
  for (; swap.size >= kVector; swap.advance(kVector)) {
    if (swap.size > kFetchFrom) fetch_vector(swap, 0);
    first_avx2(swap);
  }
  all = swap;
}
NESSIE_AVX2 void same_avx2(Swap &swap) {
  const auto low = load32(swap.pattern->shuffle(swap.phase)), high = load32(swap.pattern->shuffle(swap.phase) + 32);
  const auto fetched = end_of_fetching(swap);
  std::size_t at = 0;
  for (; at + kFour <= swap.size; at += kFour) {
    if (at < fetched) fetch_four(swap, at);
    for (std::size_t i = at; i < at + kFour; i += kVector) {
      shuffle32(swap.to + i, swap.from + i, low);
      shuffle32(swap.to + i + 32, swap.from + i + 32, high);
    }
  }
  swap.skip(at);
  any_avx2(swap);
}

// --- AVX-512 --------------------------------------------------------------------------------------------------------

#define NESSIE_AVX512 [[gnu::target("avx512bw")]]

NESSIE_AVX512 inline __m512i swapped64(const std::byte *from, __m512i shuffle) {
  return _mm512_shuffle_epi8(_mm512_loadu_si512(from), shuffle);
}
NESSIE_AVX512 void first_avx512(const Swap &swap) {
  _mm512_storeu_si512(swap.to, swapped64(swap.from, _mm512_loadu_si512(swap.pattern->shuffle(swap.phase))));
}
NESSIE_AVX512 void any_avx512(Swap &all) {
  auto swap = all;
  for (; swap.size >= kVector; swap.advance(kVector)) {
    if (swap.size > kFetchFrom) fetch_vector(swap, 0);
    first_avx512(swap);
  }
  all = swap;
}
/// To aligned vectors: each has some words of one swapped vector, and some of the next.
NESSIE_AVX512 std::size_t shifted_avx512(const Swap &swap, __m512i shuffle) {
  const auto before = kVector - reinterpret_cast<std::uintptr_t>(swap.to) % kVector;
  const auto words = _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                      _mm512_set1_epi32(static_cast<int>(before / 4)));
  const auto fetched = end_of_fetching(swap);
  auto last = swapped64(swap.from, shuffle);
  _mm512_storeu_si512(swap.to, last);
  std::size_t at = kVector;
  for (; at + kFour <= swap.size; at += kFour) {
    if (at < fetched) fetch_four(swap, at);
    for (std::size_t i = at; i < at + kFour; i += kVector) {
      const auto next = swapped64(swap.from + i, shuffle);
      _mm512_store_si512(swap.to + i + before - kVector, _mm512_permutex2var_epi32(last, words, next));
      last = next;
    }
  }
  _mm512_storeu_si512(swap.to + at - kVector, last);
  return at;
}
NESSIE_AVX512 std::size_t straight_avx512(const Swap &swap, __m512i shuffle) {
  const auto fetched = end_of_fetching(swap);
  std::size_t at = 0;
  for (; at + kFour <= swap.size; at += kFour) {
    if (at < fetched) fetch_four(swap, at);
    for (std::size_t i = at; i < at + kFour; i += kVector)
      _mm512_storeu_si512(swap.to + i, swapped64(swap.from + i, shuffle));
  }
  return at;
}
NESSIE_AVX512 void same_avx512(Swap &swap) {
  const auto shuffle = _mm512_loadu_si512(swap.pattern->shuffle(swap.phase));
  const auto beyond = reinterpret_cast<std::uintptr_t>(swap.to) % kVector;
  const bool shifts = beyond != 0 && beyond % 4 == 0 && swap.size >= kVector + kFour;
  swap.skip(shifts ? shifted_avx512(swap, shuffle) : straight_avx512(swap, shuffle));
  any_avx512(swap);
}

#endif

constexpr SwapKernel kKernels[] = {
    {"portable", swap_portably},
#if defined(__x86_64__)
    {"ssse3", swap_vectors<first_ssse3, any_ssse3, any_ssse3>},
    {"avx2", swap_vectors<first_avx2, same_avx2, any_avx2>},
    {"avx512bw", swap_vectors<first_avx512, same_avx512, any_avx512>},
#endif
};

/// How many of them this processor can do: whoever has one has those before it.
std::size_t usable_kernels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw")) return 4;
  if (__builtin_cpu_supports("avx2")) return 3;
  if (__builtin_cpu_supports("ssse3")) return 2;
#endif
  return 1;
}

/// Swaps pieces in the first cache, and writes whole lines of what they make.
void swap_for_elsewhere(const SwapKernel &kernel, const Swap &swap) {
  constexpr std::size_t kMost = 4096;
  alignas(nessie::kLineBytes) std::byte lines[nessie::kLineBytes + kMost];
  const auto most = kMost / swap.pattern->period() * swap.pattern->period();
  auto held = reinterpret_cast<std::uintptr_t>(swap.to) % nessie::kLineBytes;  // of the line that is next
  auto *to = swap.to - held;
  for (std::size_t at = 0, some; at != swap.size; at += some) {
    some = std::min(most, swap.size - at);
    kernel.run(lines + held, swap.from + at, some, *swap.pattern);
    for (auto next = at + some; next < std::min(swap.size, at + 2 * some); next += nessie::kLineBytes)
      __builtin_prefetch(swap.from + next);
    const auto end = held + some, whole = end / nessie::kLineBytes * nessie::kLineBytes;
    const auto begun = at == 0 && held != 0 ? nessie::kLineBytes : 0;  // the rest of the first line is others'
    if (begun != 0) std::memcpy(swap.to, lines + held, nessie::kLineBytes - held);
    nessie::copy_lines(to + begun, lines + begun, whole - begun);
    held = end - whole;
    to += whole;
    std::memcpy(lines, lines + whole, held);
  }
  nessie::end_of_lines();
  std::memcpy(to, lines, held);
}

}  // namespace

std::span<const SwapKernel> swap_kernels() { return std::span(kKernels).first(usable_kernels()); }

void swap_copy(void *to, const void *from, std::size_t size, const SwapPattern &pattern) {
  static const auto fastest = swap_kernels().back();
  if (nessie::is_for_elsewhere(size)) [[unlikely]]
    return swap_for_elsewhere(fastest,
                              {static_cast<std::byte *>(to), static_cast<const std::byte *>(from), size, &pattern});
  fastest.run(static_cast<std::byte *>(to), static_cast<const std::byte *>(from), size, pattern);
}

}  // namespace xdr
