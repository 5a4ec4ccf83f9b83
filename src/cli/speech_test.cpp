// SPDX-License-Identifier: BSD-3-Clause
#include "speech.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace nessie::cli {
namespace {

TEST(Speech, IsDroppedWhereNobodyReads) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_GE(fcntl(ends[1], F_SETPIPE_SZ, 8192), 8192);
  const int own = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  write_to_stderr(std::string(1 << 20, 'x'));
  dup2(own, STDERR_FILENO);
  close(own);
  close(ends[1]);
  std::string read(1 << 20, ' ');
  EXPECT_GT(::read(ends[0], read.data(), read.size()), 4096);
  close(ends[0]);
}

}  // namespace
}  // namespace nessie::cli
