// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

using nessie::Code;
using nessie::Config;
using nessie::split;
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

TEST(Config, TomlsTablesArePartsOfNames) {
  auto config = Config::parse_toml(
      "nssi.timeout = \"5s\"\n[staging]\nmemory = \"1G\"\n[nssi.pool.fast]\nthreads = 2\n"
      "[nssi]\npools = [\"fast\", \"slow\"]\nlimit.requests = 10\nencrypt = true\nfactor = 0.5");
  EXPECT_EQ(config.code(), Code::kInvalidArgument) << "a table may not be defined twice";
  config = Config::parse_toml(
      "[staging]\nmemory = \"1G\"\n[nssi]\ntimeout = \"5s\"\npools = [\"fast\", \"slow\"]\n"
      "limit.requests = 10\nencrypt = true\nfactor = 0.5\n[nssi.pool.fast]\nthreads = 2\n");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*config->get_size("staging.memory", 0), 1ull << 30);
  EXPECT_EQ(config->get_or("nssi.pools", ""), "fast slow");
  EXPECT_EQ(*config->get_int("nssi.pool.fast.threads", 0), 2);
  EXPECT_EQ(*config->get_int("nssi.limit.requests", 0), 10);
  EXPECT_EQ(*config->get_bool("nssi.encrypt", false), true);
  EXPECT_EQ(config->get_or("nssi.factor", ""), "0.5");
}

TEST(Config, BadTomlIsToldWithLineAndColumn) {
  for (const auto *text :
       {"a = 1\nb = 8G\n", "a = 1\nb = 1979-05-27\n", "a = 1\nb = [[1]]\n", "a = 1\nb = [{c = 1}]\n"}) {
    auto config = Config::parse_toml(text);
    ASSERT_EQ(config.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(config.error().message.find("line 2"), std::string::npos) << config.error().message;
  }
}

TEST(Config, ReloadingKeepsFlagsAndTakesTheFileAnew) {
  char path[] = "/tmp/nessie-config-XXXXXX.toml";
  const int file = ::mkstemps(path, 5);
  ASSERT_GE(file, 0);
  ::close(file);
  ::setenv("NESSIE_CONFIG", path, 1);
  auto write = [&](const char *text) { std::ofstream(path) << text; };
  write("test.flag = 1\ntest.value = 1\n");
  auto config = *Config::load();
  config.set("test.flag", "mine");
  write("test.flag = 2\ntest.value = 2\n");
  EXPECT_TRUE(config.reload().ok());
  EXPECT_EQ(config.get_or("test.flag", ""), "mine");
  EXPECT_EQ(config.get_or("test.value", ""), "2");
  write("no toml");
  EXPECT_EQ(config.reload().code(), Code::kInvalidArgument);
  EXPECT_EQ(config.get_or("test.value", ""), "2");
  ::unsetenv("NESSIE_CONFIG");
  ::unlink(path);
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

TEST(Config, ListsAreSplitAtAnySeparator) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split("a,b c", ", "), (Parts{"a", "b", "c"}));
  EXPECT_EQ(split(" ,a,,b, ", ", "), (Parts{"a", "b"}));
  EXPECT_EQ(split("a b", ","), (Parts{"a b"}));
  EXPECT_TRUE(split("", ",").empty() && split(",", ",").empty());
}
