// SPDX-License-Identifier: BSD-3-Clause
#include <nessie/copy.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace nessie {
namespace {

std::vector<unsigned char> counted(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
  return bytes;
}

TEST(CopyBytes, CopiesAllOfThemAndNoMore_WhereverTheyLieInTheirPages) {
  constexpr std::size_t kMost = (1 << 20) + 5, kSpace = kMost + 8192;
  const auto source = counted(kSpace);
  for (bool is_read_elsewhere : {false, true})
    for (std::size_t size : {1, 63, 2047, 2048, 2049, 4096, 6145, 1 << 16, (1 << 20) - 1, 1 << 20, (1 << 20) + 5})
      for (std::size_t behind : {0, 1, 12, 63, 64, 2048, 4095}) {
        std::vector<unsigned char> target(kSpace, 0xEE);
        const auto base = (reinterpret_cast<std::uintptr_t>(source.data()) + behind -
                           reinterpret_cast<std::uintptr_t>(target.data())) %
                          4096;
        auto *to = target.data() + base;
        const ReadElsewhere scope(is_read_elsewhere);
        copy_bytes(to, source.data(), size);
        ASSERT_EQ(std::memcmp(to, source.data(), size), 0) << size << " bytes, " << behind << " behind";
        ASSERT_EQ(to[size], 0xEE);
        ASSERT_TRUE(base == 0 || to[-1] == 0xEE);
      }
}

TEST(CopyBytes, OfNoBytes_ThePointersMayBeNull) { copy_bytes(nullptr, nullptr, 0); }

TEST(ReadElsewhere, LastsForItsScope_AndNests) {
  constexpr std::size_t kLarge = 1 << 20;
  EXPECT_FALSE(is_for_elsewhere(kLarge));
  {
    const ReadElsewhere outer;
    { const ReadElsewhere inner(false); }
    { const ReadElsewhere inner; }
    EXPECT_TRUE(is_for_elsewhere(kLarge));
    EXPECT_FALSE(is_for_elsewhere(100));
    std::thread([] { EXPECT_FALSE(is_for_elsewhere(kLarge)); }).join();
  }
  EXPECT_FALSE(is_for_elsewhere(kLarge));
}

TEST(BestPiece, IsShort_WhereTheTargetLiesJustBehindInThePage) {
  auto piece = [](std::uintptr_t to, std::uintptr_t from, std::size_t size) {
    return best_piece(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), size);
  };
  EXPECT_EQ(piece(0x10010, 0x20004, 100'000), kShortCopy);
  EXPECT_EQ(piece(0x10010, 0x20004, 100), 100u);
  EXPECT_EQ(piece(0x10010, 0x20010, 100'000), 100'000u);
  EXPECT_EQ(piece(0x10004, 0x20010, 100'000), 100'000u);
  EXPECT_EQ(piece(0x10050, 0x20004, 100'000), 100'000u);
  EXPECT_EQ(piece(0x10010, 0x20004, 1 << 20), std::size_t{1} << 20);
}

}  // namespace
}  // namespace nessie
