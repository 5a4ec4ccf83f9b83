// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"
#include "base/clock.hpp"
#include "base/config_reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

using nessie::Code;
using nessie::Config;
using nessie::ConfigReader;
using nessie::Deadline;
using nessie::split;
using namespace std::chrono_literals;

namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// A file that NESSIE_CONFIG names. `path` ends in XXXXXX and five characters.
class ConfigFile {
 public:
  explicit ConfigFile(std::string path) : path_(std::move(path)) {
    const int file = ::mkstemps(path_.data(), 5);
    if (file >= 0) ::close(file);
    ::setenv("NESSIE_CONFIG", path_.c_str(), 1);
  }
  ~ConfigFile() {
    ::unsetenv("NESSIE_CONFIG");
    ::unlink(path_.c_str());
  }
  void write(const char *text) { std::ofstream(path_) << text; }
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

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
  ConfigFile file("/tmp/nessie-config-XXXXXX.toml");
  file.write("test.flag = 1\ntest.value = 1\n");
  auto config = *Config::load();
  config.set("test.flag", "mine");
  file.write("test.flag = 2\ntest.value = 2\n");
  EXPECT_TRUE(config.reload().ok());
  EXPECT_EQ(config.get_or("test.flag", ""), "mine");
  EXPECT_EQ(config.get_or("test.value", ""), "2");
  file.write("no toml");
  EXPECT_EQ(config.reload().code(), Code::kInvalidArgument);
  EXPECT_EQ(config.get_or("test.value", ""), "2");
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

TEST(Config, TimeBeyondAllClocks_IsADeadlineThatDoesNotPass) {
  auto config = *Config::parse_file_text("long = 9999999999\nlonger = 2000000000000h\n");
  for (const auto *key : {"long", "longer"}) {
    const auto time = config.get_duration(key, 0ms);
    ASSERT_TRUE(time.ok()) << time.error().message;
    EXPECT_GT(*time, std::chrono::years(99));
    EXPECT_FALSE(Deadline::in(*time).passed());
  }
}

TEST(Config, CountThatItsVariableCannotHold_IsRefused) {
  auto config = *Config::parse_file_text("threads = 4294967296\n");
  unsigned threads = 1;
  ConfigReader read(config);
  read.count("threads", threads);
  EXPECT_EQ(read.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(threads, 1u);
}

TEST(Config, WrongValueIsAnErrorOfEveryType) {
  auto config = *Config::parse_file_text("a.b = maybe\n");
  for (auto code :
       {config.get_bool("a.b", true).code(), config.get_int("a.b", 1).code(), config.get_count("a.b", 1).code(),
        config.get_size("a.b", 1).code(), config.get_duration("a.b", 1ms).code()})
    EXPECT_EQ(code, Code::kInvalidArgument);
}

TEST(Config, WrongValueNamesTheSettingAndWhereItComesFrom) {
  for (const auto *name : {"/tmp/nessie-config-XXXXXX.toml", "/tmp/nessie-config-XXXXXX.conf"}) {
    ConfigFile file(name);
    file.write("# head\n\ntest.value = \"maybe\"\n");
    auto config = *Config::load();
    const auto message = [&] { return config.get_bool("test.value", true).error().message; };
    EXPECT_TRUE(contains(message(), "test.value (from " + file.path() + ", line 3)")) << message();
    EXPECT_FALSE(contains(message(), "NESSIE_TEST_VALUE")) << message();
    ::setenv("NESSIE_TEST_VALUE", "perhaps", 1);
    EXPECT_TRUE(contains(message(), "test.value (from NESSIE_TEST_VALUE) is 'perhaps'")) << message();
    ::unsetenv("NESSIE_TEST_VALUE");
    config.set("test.value", "no idea");
    EXPECT_TRUE(contains(message(), "test.value (from a flag) is 'no idea'")) << message();
  }
}

TEST(Config, ACountHasNoUnit) {
  auto config = *Config::parse_file_text("good = 64\nsize = 64K\nnegative = -1\nhuge = 99999999999999999999\n");
  EXPECT_EQ(*config.get_count("good", 0), 64u);
  EXPECT_EQ(*config.get_count("absent", 7), 7u);
  for (const auto *key : {"size", "negative", "huge"}) {
    const auto count = config.get_count(key, 0);
    ASSERT_EQ(count.code(), Code::kInvalidArgument) << key;
    EXPECT_TRUE(contains(count.error().message, "without a unit")) << count.error().message;
  }
}

TEST(Config, MisspeltSettingsAreWarnedOfOnceInAProcess) {
  ConfigFile file("/tmp/nessie-config-XXXXXX.toml");
  file.write("[nssi]\ntimeot = \"5s\"\nlimit = {request = 1, bytes = 2}\n[lab]\ndepth = 3\n");
  ::setenv("NESSIE_NNTI_SPINUS", "1", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Config::load().ok());
  EXPECT_TRUE(Config::load().ok());
  const auto log = ::testing::internal::GetCapturedStderr();
  ::unsetenv("NESSIE_NNTI_SPINUS");
  const auto path = file.path();
  EXPECT_TRUE(contains(log, path + ", line 2: there is no setting nssi.timeot; did you mean nssi.timeout?\n")) << log;
  EXPECT_TRUE(contains(log, path + ", line 3: there is no setting nssi.limit.request; did you mean")) << log;
  EXPECT_TRUE(contains(log, "NESSIE_NNTI_SPINUS is no setting; did you mean NESSIE_NNTI_SPIN_US?\n")) << log;
  EXPECT_EQ(std::ranges::count(log, '\n'), 3) << log;
}

TEST(Config, AMisspeltFlagIsWarnedOf) {
  Config config;
  ::testing::internal::CaptureStderr();
  config.set("nssi.recconnect", "1s");
  config.set("nssi.reconnect", "1s");
  config.set("lab.depth", "1");
  const auto log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(log, "there is no setting nssi.recconnect; did you mean nssi.reconnect?\n")) << log;
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
}

TEST(Config, ListsAreSplitAtAnySeparator) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split("a,b c", ", "), (Parts{"a", "b", "c"}));
  EXPECT_EQ(split(" ,a,,b, ", ", "), (Parts{"a", "b"}));
  EXPECT_EQ(split("a b", ","), (Parts{"a b"}));
  EXPECT_TRUE(split("", ",").empty() && split(",", ",").empty());
}
