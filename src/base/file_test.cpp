// SPDX-License-Identifier: BSD-3-Clause
#include "base/file.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

namespace nessie {
namespace {

class File : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char *name) const { return folder_ + "/" + name; }
  std::string folder_ = "/tmp/nessie-file-XXXXXX";
};

TEST_F(File, IsReadAsItWasWritten) {
  const std::string text("one\0two\n", 8);
  ASSERT_TRUE(write_file(path("a"), text).ok());
  ASSERT_TRUE(read_file(path("a")).ok());
  EXPECT_EQ(*read_file(path("a")), text);
  ASSERT_TRUE(write_file(path("a"), "").ok());
  EXPECT_EQ(*read_file(path("a")), "");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "something was left behind";
}

TEST_F(File, WithoutEnd_IsNoFileOfSettings) {
  EXPECT_EQ(read_settings_file("/dev/zero").code(), Code::kTooLarge);
  ASSERT_TRUE(write_file(path("a"), "staging.memory = 1G\n").ok());
  EXPECT_EQ(*read_settings_file(path("a")), "staging.memory = 1G\n");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose frames are larger
TEST_F(File, IsReadByAThreadWithTheSmallestStack) {
  pthread_attr_t attributes;
  pthread_t thread;
  auto name = path("a");
  ASSERT_TRUE(write_file(name, "text").ok());
  const auto read = [](void *name) -> void * {
    return *read_file(*static_cast<std::string *>(name)) == "text" ? name : nullptr;
  };
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN), 0);
  ASSERT_EQ(::pthread_create(&thread, &attributes, read, &name), 0);
  void *result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, &name);
  ::pthread_attr_destroy(&attributes);
}
#endif

TEST_F(File, ThatIsNoneIsAnErrorWithItsCause) {
  EXPECT_EQ(read_file(path("missing")).code(), Code::kNotFound);
  EXPECT_EQ(read_file(path("missing")).error().cause, ENOENT);
  EXPECT_EQ(read_file(folder_).code(), Code::kNotFound);
  EXPECT_EQ(read_file(folder_).error().cause, EISDIR);
}

TEST_F(File, ThatCannotBeWrittenLeavesNothing) {
  EXPECT_EQ(write_file(path("none/a"), "text").code(), Code::kIo);
  std::filesystem::create_directory(path("b"));
  EXPECT_EQ(write_file(path("b"), "text").code(), Code::kIo);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(File, ThatIsPrivate_HasMode0600WhateverTheUmask) {
  const auto before = ::umask(0);
  ASSERT_TRUE(write_private_file(path("a"), "secret").ok());
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(*read_trusted_file(path("a"), 6), "secret");
  EXPECT_EQ(write_private_file(path("none/a"), "text").code(), Code::kIo);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "something was left behind";
}

TEST_F(File, ThatOthersMayHaveWritten_IsNotTrusted) {
  ASSERT_TRUE(write_private_file(path("a"), "text").ok());
  std::filesystem::create_symlink(path("a"), path("link"));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  for (const auto &wrong : {path("link"), path("fifo"), folder_, std::string("/dev/null")})
    EXPECT_EQ(read_trusted_file(wrong, 100).code(), Code::kRefused) << wrong;
  EXPECT_EQ(read_trusted_file(path("missing"), 100).code(), Code::kNotFound);
  EXPECT_EQ(read_trusted_file(path("a"), 3).code(), Code::kTooLarge);
  ASSERT_EQ(::chmod(path("a").c_str(), 0620), 0);
  EXPECT_EQ(read_trusted_file(path("a"), 100).code(), Code::kRefused);
  ASSERT_EQ(::chmod(path("a").c_str(), 0600), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(path("a").c_str(), 4711, 4711), 0);
  EXPECT_EQ(read_trusted_file(path("a"), 100).code(), Code::kRefused);
}

}  // namespace
}  // namespace nessie
