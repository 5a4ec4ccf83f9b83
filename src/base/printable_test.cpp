// SPDX-License-Identifier: BSD-3-Clause
#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace nessie {
namespace {

TEST(Printable, TextStaysAsItIs) {
  EXPECT_EQ(printable("wrfout_d01_2005-08-28_00:00:00"), "wrfout_d01_2005-08-28_00:00:00");
  EXPECT_EQ(printable("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a"), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a");
}

TEST(Printable, ControlCharactersAndBytesOfOtherCodesAreEscaped) {
  EXPECT_EQ(printable("new\nline\t\x1b[2J\x7f"), "new\\nline\\t\\x1b[2J\\x7f");
  EXPECT_EQ(printable("r\xe9sum\xe9"), "r\\xe9sum\\xe9");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "a terminal takes it for ESC [";
}

TEST(Printable, WhatIsNoWellFormedUtf8IsNone) {
  for (const char *text : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xf8\x88\x80\x80\x80", "\xe2\x82", "a\xff"}) {
    EXPECT_FALSE(is_utf8(text)) << printable(text);
    EXPECT_TRUE(is_utf8(to_utf8(text))) << printable(text);
    EXPECT_TRUE(is_utf8(printable(text)));
  }
  EXPECT_TRUE(is_utf8("\xed\x9f\xbf\xf4\x8f\xbf\xbf"));
}

TEST(Printable, TheBytesCanBeHadAsWell) {
  EXPECT_EQ(to_utf8("r\xe9sum\xe9"), "r\xef\xbf\xbdsum\xef\xbf\xbd");
  EXPECT_EQ(hex_bytes("r\xe9"), "72e9");
}

}  // namespace
}  // namespace nessie
