// SPDX-License-Identifier: BSD-3-Clause
// Arrays of numbers, and of structs of nothing but numbers, between memory and XDR's big-endian bytes: a copy in which
// each number's bytes change their order, done with the vector instructions that the processor has.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

namespace xdr {

/// What a struct's numbers are, in slots of eight bytes: one number of eight bytes, or two of four. Arrays of it repeat
/// that. As the operand of byte shuffles: for each byte of the image, where in its group of 16 bytes it comes from.
class SwapPattern {
 public:
  static constexpr std::size_t kSlotBytes = 8, kVectorBytes = 64;
  static constexpr std::size_t kMostSlots = 32;  ///< of a struct

  /// Bit i of `wide`: slot i is one number of eight bytes. `slots` is 1 to kMostSlots.
  constexpr SwapPattern(std::size_t slots, std::uint32_t wide)
      : period_(kVectorBytes * (slots / std::gcd(slots, kVectorBytes / kSlotBytes))) {
    for (std::size_t at = 0; at < period_ + kVectorBytes; at += kSlotBytes)
      add_slot(at, ((wide >> (at / kSlotBytes % slots)) & 1) != 0);
  }

  /// In bytes, a multiple of kVectorBytes.
  constexpr std::size_t period() const { return period_; }
  /// That of the bytes from `at` on, which is less than period(): at least kVectorBytes of them.
  constexpr const std::uint8_t *shuffle(std::size_t at) const { return shuffle_.data() + at; }
  /// Whether the slot at byte `at` is one number.
  constexpr bool is_wide(std::size_t at) const { return (shuffle_[at] & 4) != 0; }

 private:
  constexpr void add_slot(std::size_t at, bool wide) {
    for (std::size_t i = 0; i < kSlotBytes; ++i)
      shuffle_[at + i] = static_cast<std::uint8_t>(at % 16 + (wide ? 7 - i : i ^ 3));
  }

  std::size_t period_;
  alignas(kVectorBytes) std::array<std::uint8_t, (kMostSlots + 1) * kVectorBytes> shuffle_{};
};

inline constexpr SwapPattern kWordsPattern{1, 0}, kDoubleWordsPattern{1, 1};

/// Fewer bytes than that are swapped faster where they are used.
inline constexpr std::size_t kLeastSwapBytes = 256;

/// Copies `size` bytes, a multiple of 4 (of 8 unless all numbers have four), and swaps them by the pattern, which
/// begins at the first. Touches nothing else. The two may begin anywhere, and do not overlap.
void swap_copy(void *to, const void *from, std::size_t size, const SwapPattern &pattern);

/// One way to do swap_copy().
struct SwapKernel {
  const char *name;
  void (*run)(std::byte *to, const std::byte *from, std::size_t size, const SwapPattern &pattern);
};
/// Those that this processor can do, the slowest first. swap_copy() is the last.
std::span<const SwapKernel> swap_kernels();

}  // namespace xdr
