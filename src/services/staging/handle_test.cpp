// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/handle.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace staging {
namespace {

using nessie::Code;

class Handle : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(path_) << "of the program"; }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  FileHandle of(const std::string &path) const {
    const nessie::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return describe_handle(file.get());
  }
  std::string folder_ = [] {
    auto folder = ::testing::TempDir() + "handle-XXXXXX";
    return std::string(::mkdtemp(folder.data()));
  }();
  std::string path_ = folder_ + "/file";
};

TEST_F(Handle, OfOneFileIsTheSameByEachOfItsNames) {
  std::filesystem::create_hard_link(path_, folder_ + "/link");
  std::filesystem::create_symlink(path_, folder_ + "/symbolic");
  EXPECT_EQ(of(path_).identity, of(folder_ + "/link").identity);
  EXPECT_EQ(of(path_).identity, identity_of(folder_ + "/symbolic"));
  EXPECT_EQ(identity_of(folder_ + "/absent"), FileIdentity{});
}

TEST_F(Handle, GivenToReadIsNotForWriting_AndADeviceIsForNothing) {
  const nessie::Fd to_read(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)),
      device(::open("/dev/null", O_RDWR | O_CLOEXEC)), to_append(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_TRUE(check_given(to_read.get(), false).ok());
  EXPECT_EQ(check_given(to_read.get(), true).code(), Code::kInvalidArgument);
  EXPECT_EQ(check_given(to_append.get(), true).code(), Code::kInvalidArgument);
  EXPECT_EQ(check_given(device.get(), true).code(), Code::kInvalidArgument);
  EXPECT_EQ(check_given(-1, false).code(), Code::kInvalidArgument);
  EXPECT_TRUE(check_lent(to_read.get(), false).ok());
  EXPECT_EQ(check_lent(to_append.get(), false).code(), Code::kRefused);
  const nessie::Fd names_it(::open(path_.c_str(), O_PATH | O_CLOEXEC));  // needs no permission to read
  EXPECT_EQ(check_given(names_it.get(), false).code(), Code::kInvalidArgument);
}

TEST_F(Handle, ByNameIsRefusedByRoot_AndForAnotherUser) {
  auto handle = of(path_);
  if (::geteuid() == 0) {
    EXPECT_EQ(open_by_name(path_, handle, true).code(), Code::kRefused);
    ASSERT_EQ(::seteuid(65534), 0);
  }
  handle.user = ::geteuid() + 1;
  EXPECT_EQ(open_by_name(path_, handle, false).code(), Code::kRefused);
  (void)::seteuid(::getuid());
}

/// As a user who is not root.
template <class Work> void unprivileged(Work work) {
  EXPECT_EQ(::seteuid(::getuid() == 0 ? 65534 : ::getuid()), 0);
  work();
  EXPECT_EQ(::seteuid(::getuid()), 0);
}

TEST_F(Handle, ByNameOpensTheSameFileOnly) {
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  std::filesystem::permissions(path_, std::filesystem::perms::all);
  const auto other = folder_ + "/other", link = folder_ + "/symbolic";
  std::ofstream(other) << "another";
  std::filesystem::create_symlink(path_, link);
  unprivileged([&] {
    auto handle = of(path_);
    EXPECT_TRUE(open_by_name(path_, handle, true).ok());
    EXPECT_EQ(open_by_name(other, handle, false).code(), Code::kNotFound);
    EXPECT_EQ(open_by_name(link, handle, false).code(), Code::kNotFound) << "names are canonical";
    EXPECT_EQ(open_by_name(folder_ + "/absent", handle, false).code(), Code::kNotFound);
    handle.changed_ns += 1;
    EXPECT_EQ(open_by_name(path_, handle, false).code(), Code::kNotFound) << "another file that got this number";
  });
}

}  // namespace
}  // namespace staging
