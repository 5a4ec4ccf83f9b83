// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace log_ = nessie::log;

TEST(Log, WritesOneLineWithProgramAndLevel) {
  testing::internal::CaptureStderr();
  log_::set_program("nessied.0");
  log_::warning("{} bytes left", 7);
  log_::set_program("nessie");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), fmt::format("nessied.0[{}] warning: 7 bytes left\n", ::getpid()));
}

TEST(Log, KeepsQuietBelowItsLevel) {
  testing::internal::CaptureStderr();
  auto before = log_::level();
  log_::set_level(log_::Level::kError);
  log_::warning("not to be seen");
  log_::set_level(before);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}
