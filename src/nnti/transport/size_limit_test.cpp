// SPDX-License-Identifier: BSD-3-Clause
#include "base/size_limit.hpp"

#include "nnti/transport/allocation.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

namespace nnti {
namespace {

/// Nobody handles the signal here, so that it would end the test.
class SizeLimitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small{4096, before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  void TearDown() override { ::setrlimit(RLIMIT_FSIZE, &before_); }
  static bool is_blocked() {
    sigset_t blocked;
    return ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0 && sigismember(&blocked, SIGXFSZ) == 1;
  }
  rlimit before_{};
};

TEST_F(SizeLimitTest, SharedMemoryBeyondTheLimit_IsAnError) {
  EXPECT_TRUE(make_shared_memory("small", 4096, Peers::kMayWrite).ok());
  const auto memory = make_shared_memory("large", 8192, Peers::kMayWrite);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, nessie::Code::kNoMemory);
  EXPECT_EQ(memory.error().cause, EFBIG);
  EXPECT_NE(memory.error().message.find("ulimit -f"), std::string::npos);
  EXPECT_FALSE(is_blocked());
}

TEST_F(SizeLimitTest, ASignalThatWasPending_StaysSo) {
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGXFSZ);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &signal, nullptr), 0);
  ::raise(SIGXFSZ);
  EXPECT_FALSE(make_shared_memory("large", 8192, Peers::kMayWrite).ok());
  const timespec no_time{};
  EXPECT_EQ(::sigtimedwait(&signal, nullptr, &no_time), SIGXFSZ);
  EXPECT_TRUE(is_blocked());
  ::pthread_sigmask(SIG_UNBLOCK, &signal, nullptr);
}

}  // namespace
}  // namespace nnti
