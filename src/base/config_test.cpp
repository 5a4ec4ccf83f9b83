// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

using nessie::Code;
using nessie::Config;
using namespace std::chrono_literals;

TEST(Config, FlagBeatsEnvironmentBeatsFile) {
  auto config = *Config::parse_file_text("test.order = file\n");
  EXPECT_EQ(config.get_or("test.order", "none"), "file");
  ::setenv("NESSIE_TEST_ORDER", "environment", 1);
  EXPECT_EQ(config.get_or("test.order", "none"), "environment");
  config.set("test.order", "flag");
  EXPECT_EQ(config.get_or("test.order", "none"), "flag");
  ::unsetenv("NESSIE_TEST_ORDER");
}

TEST(Config, FileTakesCommentsBlanksAndSpaces) {
  auto config = *Config::parse_file_text("# head\n\n  staging.memory=1G  \r\nname = a = b");
  EXPECT_EQ(*config.get_size("staging.memory", 0), 1ull << 30);
  EXPECT_EQ(config.get_or("name", ""), "a = b");
}

TEST(Config, FileErrorNamesTheLine) {
  auto config = Config::parse_file_text("a = 1\n\nnonsense\n");
  ASSERT_EQ(config.code(), Code::kInvalidArgument);
  EXPECT_NE(config.error().message.find("line 3"), std::string::npos) << config.error().message;
}

TEST(Config, MissingFileIsReportedWithItsName) {
  ::setenv("NESSIE_CONFIG", "/nowhere/nessie.conf", 1);
  auto config = Config::load();
  ::unsetenv("NESSIE_CONFIG");
  ASSERT_EQ(config.code(), Code::kNotFound);
  EXPECT_NE(config.error().message.find("/nowhere/nessie.conf"), std::string::npos);
}

TEST(Config, ValuesAreTyped) {
  auto config = *Config::parse_file_text("yes = on\nno = 0\nint = -7\nms = 500ms\ns = 30\nmin = 2min\n");
  EXPECT_TRUE(*config.get_bool("yes", false));
  EXPECT_FALSE(*config.get_bool("no", true));
  EXPECT_EQ(*config.get_int("int", 0), -7);
  EXPECT_EQ(*config.get_duration("ms", 0ms), 500ms);
  EXPECT_EQ(*config.get_duration("s", 0ms), 30s);
  EXPECT_EQ(*config.get_duration("min", 0ms), 2min);
  EXPECT_EQ(*config.get_int("absent", 5), 5);
}

TEST(Config, WrongValueNamesSettingAndVariable) {
  auto config = *Config::parse_file_text("a.b = maybe\n");
  for (auto code : {config.get_bool("a.b", true).code(), config.get_int("a.b", 1).code(),
                    config.get_size("a.b", 1).code(), config.get_duration("a.b", 1ms).code()})
    EXPECT_EQ(code, Code::kInvalidArgument);
  EXPECT_NE(config.get_bool("a.b", true).error().message.find("NESSIE_A_B"), std::string::npos);
}
