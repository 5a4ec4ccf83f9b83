// SPDX-License-Identifier: BSD-3-Clause
#include "base/file.hpp"

#include <gtest/gtest.h>

#include <cerrno>
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

}  // namespace
}  // namespace nessie
