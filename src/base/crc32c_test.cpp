// SPDX-License-Identifier: BSD-3-Clause
#include <base/crc32c.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

namespace nessie {
namespace {

using Bytes = std::vector<std::byte>;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

Bytes random_bytes_of(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  Bytes bytes(size);
  for (auto &byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// A bit at a time, as the definition has it.
std::uint32_t by_definition(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0u;
  for (const auto byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

TEST(Crc32c, IsThatOfRfc3720) {
  Bytes bytes(32);
  EXPECT_EQ(crc32c(bytes), 0x8a9136aau);
  std::ranges::fill(bytes, std::byte{0xff});
  EXPECT_EQ(crc32c(bytes), 0x62a8ab43u);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46dd794eu);
  std::ranges::reverse(bytes);
  EXPECT_EQ(crc32c(bytes), 0x113fdb5cu);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, AllSizesAndAlignments_AreAsTheTablesHaveThem_AndTheDefinition) {
  const auto bytes = random_bytes_of(2100);
  for (std::size_t size = 0; size < 2048; ++size) {
    const auto part = std::span(bytes).subspan(size % 41, size);
    const auto right = by_definition(part);
    ASSERT_EQ(crc32c(part), right) << size;
    ASSERT_EQ(crc32c_by_tables(part), right) << size;
    ASSERT_EQ(crc32c_without_folding(part), right) << size;
  }
  for (const std::size_t size : {12239, 12240, 12241, 24487, 100003, 1 << 20}) {
    const auto more = random_bytes_of(size);
    ASSERT_EQ(crc32c(more), by_definition(more)) << size;
    ASSERT_EQ(crc32c_without_folding(more), by_definition(more)) << size;
    ASSERT_EQ(crc32c_by_tables(more), by_definition(more)) << size;
  }
}

TEST(Crc32c, CopyingGivesTheBytes_AndTheirChecksum_AndTouchesNothingElse) {
  const auto bytes = random_bytes_of(30000);
  for (std::size_t size = 0; size < 29000; size += size < 1100 ? 1 : 977) {
    const auto part = std::span(bytes).subspan(size % 37, size);
    Bytes copied(size + 64, std::byte{0x5a});
    auto *to = copied.data() + size % 29;
    ASSERT_EQ(copy_crc32c(to, part.data(), size), by_definition(part)) << size;
    ASSERT_TRUE(std::equal(part.begin(), part.end(), to)) << size;
    const auto untouched =
        std::ranges::count(copied.begin(), copied.begin() + static_cast<long>(size % 29), std::byte{0x5a}) +
        std::count(to + size, copied.data() + copied.size(), std::byte{0x5a});
    ASSERT_EQ(untouched, 64) << size;
  }
}

TEST(Crc32c, GoesOnBehindOthers) {
  const auto bytes = random_bytes_of(20000);
  const auto whole = by_definition(bytes);
  Bytes copied(bytes.size());
  for (const std::size_t first : {0, 1, 7, 100, 4096, 13000, 20000}) {
    const auto front = std::span(bytes).first(first), back = std::span(bytes).subspan(first);
    EXPECT_EQ(crc32c(back, crc32c(front)), whole) << first;
    EXPECT_EQ(crc32c_by_tables(back, crc32c_by_tables(front)), whole) << first;
    EXPECT_EQ(copy_crc32c(copied.data(), back.data(), back.size(), crc32c(front)), whole) << first;
  }
}

TEST(Crc32c, OfTwoJoined_IsThatOfTheWhole) {
  const auto bytes = random_bytes_of(5000);
  const auto whole = crc32c(bytes);
  for (std::size_t first = 0; first <= bytes.size(); first += 50) {
    const auto front = std::span(bytes).first(first), back = std::span(bytes).subspan(first);
    EXPECT_EQ(join_crc32c(crc32c(front), crc32c(back), back.size()), whole) << first;
  }
  EXPECT_EQ(join_crc32c(0, 0, 0), 0u);
  for (const std::uint64_t bytes : {0ull, 1ull, 3ull, 4ull, 5ull, 400ull, 1ull << 20, (1ull << 40) + 7})
    for (const std::uint32_t checksum : {0u, 1u, 0x80000000u, 0x12345678u, ~0u})
      EXPECT_EQ(Crc32cShift(bytes)(checksum), join_crc32c(checksum, 0, bytes)) << bytes;
}

TEST(Crc32c, OfMoreThanFourGigabytes_IsJoinedInAnyOrder) {
  const auto bytes = random_bytes_of(100);
  const auto a = crc32c(bytes), b = crc32c(std::span(bytes).first(10));
  constexpr auto kMany = std::uint64_t{5} << 40;
  EXPECT_EQ(join_crc32c(join_crc32c(a, b, 10), a, kMany), join_crc32c(a, join_crc32c(b, a, kMany), kMany + 10));
}

}  // namespace
}  // namespace nessie
