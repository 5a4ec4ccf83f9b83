// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include <gtest/gtest.h>

using nessie::format_size;
using nessie::parse_size;

TEST(ParseSize, TakesPowersOf1024) {
  EXPECT_EQ(*parse_size("4096"), 4096u);
  EXPECT_EQ(*parse_size("64K"), 65536u);
  EXPECT_EQ(*parse_size("512MiB"), 512u << 20);
  EXPECT_EQ(*parse_size("2 G"), 2ull << 30);
  EXPECT_EQ(*parse_size("0"), 0u);
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char *text : {"", "K", "-1", "1.5G", "12Q", "12KiBs", "17179869184G", "99999999999999999999"})
    EXPECT_EQ(parse_size(text).code(), nessie::Code::kInvalidArgument) << text;
}

TEST(FormatSize, IsReadable) {
  EXPECT_EQ(format_size(512), "512 B");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(64 << 20), "64 MiB");
  EXPECT_EQ(format_size(~0ull), "16 EiB");
}
