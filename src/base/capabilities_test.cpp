// SPDX-License-Identifier: BSD-3-Clause
#include "base/capabilities.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <thread>

namespace {

bool may_write(const char *path) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

}  // namespace

// A thread has capabilities of its own, so that the test keeps its others.
TEST(Capabilities, WhatIsNotKept_IsGoneForGood_InThreadsThatComeLaterToo) {
  char path[] = "/tmp/nessie-capabilities-XXXXXX";
  ::close(::mkstemp(path));
  ::chmod(path, 0);
  const bool is_root = may_write(path);
  std::thread([&] {
    EXPECT_TRUE(nessie::keep_only_capabilities({CAP_DAC_OVERRIDE}));
    EXPECT_EQ(may_write(path), is_root);
    EXPECT_TRUE(nessie::keep_only_capabilities({CAP_FOWNER}));
    EXPECT_FALSE(may_write(path));
    std::thread([&] { EXPECT_FALSE(may_write(path)); }).join();
    EXPECT_TRUE(nessie::keep_only_capabilities({CAP_DAC_OVERRIDE}));
    EXPECT_FALSE(may_write(path));
  }).join();
  EXPECT_EQ(may_write(path), is_root);
  ::unlink(path);
}
