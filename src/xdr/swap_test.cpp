// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <nessie/copy.hpp>
#include <random>
#include <vector>
#include <xdr/swap.hpp>

namespace {

using xdr::SwapPattern;
using Bytes = std::vector<std::byte>;

/// Slots of eight bytes, one by one; and a word that may remain.
Bytes swapped(std::span<const std::byte> bytes, std::size_t slots, std::uint32_t wide) {
  Bytes out(bytes.begin(), bytes.end());
  if (std::endian::native == std::endian::big) return out;
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t width = ((wide >> (at / 8 % slots)) & 1) != 0 ? 8 : 4;
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(at), out.begin() + static_cast<std::ptrdiff_t>(at + width));
    at += width;
  }
  return out;
}

/// Bytes at the end of their memory, that a sanitizer may guard it, `offset` past what malloc() returns.
class Tight {
 public:
  Tight(std::size_t size, std::size_t offset)
      : memory_(new std::byte[offset + size]), bytes_(memory_.get() + offset, size) {
    std::fill_n(memory_.get(), offset, std::byte{0xee});
  }
  std::span<std::byte> bytes() const { return bytes_; }
  bool is_untouched_before() const {
    return std::all_of(memory_.get(), bytes_.data(), [](std::byte b) { return b == std::byte{0xee}; });
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::span<std::byte> bytes_;
};

struct Case {
  std::size_t slots, size, to_offset, from_offset;
  std::uint32_t wide;
};

void expect_swapped(const xdr::SwapKernel &kernel, const Case &c, std::mt19937 &random) {
  const Tight from(c.size, c.from_offset), to(c.size + 8, c.to_offset);
  for (auto &b : from.bytes()) b = static_cast<std::byte>(random());
  const auto after = to.bytes().last(8);
  std::ranges::fill(after, std::byte{0xdd});
  kernel.run(to.bytes().data(), from.bytes().data(), c.size, SwapPattern(c.slots, c.wide));
  const auto image = to.bytes().first(c.size);
  ASSERT_EQ(Bytes(image.begin(), image.end()), swapped(from.bytes(), c.slots, c.wide))
      << kernel.name << ": " << c.size << " bytes, " << c.slots << " slots, wide " << c.wide << ", at " << c.to_offset
      << " from " << c.from_offset;
  EXPECT_TRUE(to.is_untouched_before());
  EXPECT_EQ(std::ranges::count(after, std::byte{0xdd}), 8);
}

TEST(SwapCopy, RandomArrays_AreSwappedAsNumberByNumber_ByEveryKernel) {
  std::mt19937 random(1);
  for (const auto &kernel : xdr::swap_kernels())
    for (int i = 0; i < 4000; ++i) {
      const std::size_t slots = 1 + random() % SwapPattern::kMostSlots;
      const auto wide = static_cast<std::uint32_t>(random());
      const std::size_t size = random() % 200 * 8;
      ASSERT_NO_FATAL_FAILURE(expect_swapped(kernel, {slots, size, random() % 70, random() % 70, wide}, random));
    }
}

TEST(SwapCopy, AlignedDestinations_AreSwappedTheSame) {
  std::mt19937 random(2);
  for (const auto &kernel : xdr::swap_kernels())
    for (std::size_t to = 0; to < 64; to += 4)
      for (std::size_t slots = 1; slots <= 9; ++slots) {
        const auto wide = static_cast<std::uint32_t>(random());
        ASSERT_NO_FATAL_FAILURE(expect_swapped(kernel, {slots, (500 + random() % 80) * 8, to, 4, wide}, random));
      }
}

TEST(SwapCopy, EverySmallNumberOfWords_IsSwapped) {
  std::mt19937 random(3);
  for (const auto &kernel : xdr::swap_kernels())
    for (std::size_t size = 0; size < 700; size += 4)
      ASSERT_NO_FATAL_FAILURE(expect_swapped(kernel, {1, size, size % 17, size % 5, 0}, random));
}

TEST(SwapCopy, ArraysLargerThanTheCaches_AreSwapped) {
  std::mt19937 random(4);
  for (const auto &kernel : xdr::swap_kernels())
    for (std::size_t size : {24u << 10, (24u << 10) + 64, 100u << 10, (3u << 20) + 8})
      for (std::size_t slots : {1u, 2u, 3u, 17u})
        ASSERT_NO_FATAL_FAILURE(expect_swapped(kernel, {slots, size, random() % 64, 4, 0b10110}, random));
}

TEST(SwapCopy, ForAnotherProcessor_ArraysAreSwappedTheSame) {
  std::mt19937 random(6);
  const xdr::SwapKernel elsewhere{"for elsewhere", [](auto *to, const auto *from, auto size, const auto &pattern) {
                                    const nessie::ReadElsewhere scope;
                                    xdr::swap_copy(to, from, size, pattern);
                                  }};
  for (std::size_t to = 0; to < 64; to += 4)
    for (std::size_t slots : {1u, 2u, 3u, 7u, 31u}) {
      const std::size_t size = (4 << 10) + random() % 3000 * 8;
      const auto wide = static_cast<std::uint32_t>(random());
      ASSERT_NO_FATAL_FAILURE(expect_swapped(elsewhere, {slots, size, to, 4, wide}, random));
      ASSERT_NO_FATAL_FAILURE(expect_swapped(elsewhere, {slots, size, random() % 70, random() % 70, wide}, random));
    }
}

TEST(SwapCopy, NumbersOfOneKind_AreSwappedByTheirOwnPatterns) {
  std::mt19937 random(5);
  for (const auto &kernel : xdr::swap_kernels()) {
    Bytes from(1024), to(1024);
    for (auto &b : from) b = static_cast<std::byte>(random());
    kernel.run(to.data(), from.data(), from.size(), xdr::kWordsPattern);
    EXPECT_EQ(to, swapped(from, 1, 0));
    kernel.run(to.data(), from.data(), from.size(), xdr::kDoubleWordsPattern);
    EXPECT_EQ(to, swapped(from, 1, 1));
  }
}

TEST(SwapCopy, WhatIsSwappedTwice_IsAsBefore) {
  std::vector<std::uint64_t> numbers(1000), image(1000), again(1000);
  std::iota(numbers.begin(), numbers.end(), 0x0102030405060708u);
  xdr::swap_copy(image.data(), numbers.data(), 8000, xdr::kDoubleWordsPattern);
  EXPECT_NE(image, numbers);
  xdr::swap_copy(again.data(), image.data(), 8000, xdr::kDoubleWordsPattern);
  EXPECT_EQ(again, numbers);
}

}  // namespace
