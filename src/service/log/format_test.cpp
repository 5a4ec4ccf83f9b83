// SPDX-License-Identifier: BSD-3-Clause
// The bytes, as README.md has them.
#include <service/log/format.hpp>
#include <service/log/testing/log_test_base.hpp>
#include <service/log/testing/memory_store.hpp>

#include <base/crc32c.hpp>

#include <algorithm>
#include <cstdio>
#include <string>

namespace nessie::service::testing {
namespace {

using namespace log_format;

constexpr std::uint64_t kId = 0x0123456789abcdef;

Bytes block_with_a_record() {
  Bytes block(4096);
  const BlockHeader header{false, false, kId, 0x3000, 56 + 32, 0x2000, 0x2000};
  encode(header, block.data());
  std::memcpy(block.data() + 80, "headdata", 8);
  encode(RecordHeader{7, 4, 4, crc32c(bytes_of("data"))}, kId, 0x3000 + 56, block.data() + 56);
  return block;
}

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const auto byte : bytes) {
    char digits[3];
    (void)std::snprintf(digits, sizeof(digits), "%02x", std::to_integer<unsigned>(byte));
    text += digits;
  }
  return text;
}

TEST(LogFormat, ABlock_HasTheseBytes) {
  const auto block = block_with_a_record();
  EXPECT_EQ(hex_of(std::span(block).first(96)),
            "4e4c473101000000"
            "efcdab89674523010030000000000000"
            "58000000000000000020000000000000"
            "0020000000000000000000001a79c0d4"
            "492561dcd17dd8ae"
            "04000000000000000700040000000000"
            "68656164646174610000000000000000");
}

TEST(LogFormat, ABlockIsFoundAgain_WhereItWasWritten_AndNowhereElse) {
  const auto block = block_with_a_record();
  const auto header = decode_block(block, 0x3000, 1 << 20);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->log_id, kId);
  EXPECT_EQ(header->end(), 0x4000u);
  EXPECT_TRUE(is_whole(*header, block));
  EXPECT_FALSE(decode_block(block, 0x4000, 1 << 20));
  EXPECT_FALSE(decode_block(std::span(block).first(55), 0x3000, 1 << 20));
}

TEST(LogFormat, AnyFlippedBit_IsSeen) {
  for (std::size_t bit = 0; bit < std::size_t{88} * 8; ++bit) {
    auto block = block_with_a_record();
    block[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    const auto header = decode_block(block, 0x3000, 1 << 20);
    EXPECT_FALSE(header && is_whole(*header, block)) << bit;
  }
}

class LogOfGoldenBytes : public LogTestBase {};

TEST_F(LogOfGoldenBytes, IsRead) {
  run([&] {
    MemoryDisk disk;
    std::ranges::copy(block_with_a_record(), &disk.at(0x3000));
    auto log = open_log(std::make_unique<MemoryStore>(runtime(), disk));
    const auto found = replay(*log);
    ASSERT_EQ(found.records.size(), 1u);
    EXPECT_EQ(found.records[0], (Kept{7, {0x3000, 0x3000 + 88}, bytes_of("head"), bytes_of("data")}));
  });
}

}  // namespace
}  // namespace nessie::service::testing
