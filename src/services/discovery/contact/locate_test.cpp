// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/contact/locate.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace nessie::service {
namespace {

class Locate : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override {
    ::unsetenv("NESSIE_LOCATE_TEST");
    std::filesystem::remove_all(folder_);
  }
  static auto find(std::string_view what) { return locate(what, Deadline::now(), sleep); }
  static Code code(std::string_view what) { return find(what).code(); }
  ContactFile write(const std::string &path) {
    return *ContactFile::write(path, {"test", "shm://here", {{{7, 1}, 2}}, {}, 0});
  }
  std::string folder_ = "/tmp/nessie-locate-XXXXXX";
};

TEST_F(Locate, TakesUrlsAsTheyAre) {
  const auto found = find("shm://a;ofi://b:1");
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().url, "shm://a;ofi://b:1");
  EXPECT_TRUE(found->front().offers.empty());
}

TEST_F(Locate, ReadsContactFiles) {
  const auto file = write(folder_ + "/a b");
  const auto found = find("file:" + folder_ + "/a b");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->front().url, "shm://here");
  EXPECT_EQ(found->front().offers, file.contact().offers);
}

TEST_F(Locate, FollowsAVariable_ToOneOrSeveral) {
  const auto file = write(folder_ + "/a");
  ::setenv("NESSIE_LOCATE_TEST", (" shm://one  file:" + folder_ + "/a\n").c_str(), 1);
  const auto found = find("env:NESSIE_LOCATE_TEST");
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].url, "shm://one");
  EXPECT_EQ((*found)[1].url, "shm://here");
}

TEST_F(Locate, SaysWhatIsWrong) {
  for (const auto *wrong : {"", "directory", "file:", "shm://", "shm://a;", "shm://a b", "/tmp/a"})
    EXPECT_EQ(code(wrong), Code::kInvalidArgument) << wrong;
  EXPECT_EQ(code("file:" + folder_ + "/none"), Code::kTimedOut);
  EXPECT_EQ(code("env:NESSIE_LOCATE_TEST"), Code::kNotFound);
  EXPECT_EQ(code("env:"), Code::kNotFound);
  ::setenv("NESSIE_LOCATE_TEST", " ", 1);
  EXPECT_EQ(code("env:NESSIE_LOCATE_TEST"), Code::kNotFound);
  ::setenv("NESSIE_LOCATE_TEST", "env:NESSIE_LOCATE_TEST", 1);
  EXPECT_EQ(code("env:NESSIE_LOCATE_TEST"), Code::kInvalidArgument);
}

}  // namespace
}  // namespace nessie::service
