// SPDX-License-Identifier: BSD-3-Clause
#include "signals.hpp"

#include <gtest/gtest.h>

namespace nessie {
namespace {

int own_calls = 0, foreign_calls = 0;

void handler_of(int signal, void (*function)(int)) {
  struct sigaction action {};
  action.sa_handler = function;
  ASSERT_EQ(::sigaction(signal, &action, nullptr), 0);
}

TEST(SignalHandlers, ASignalThatComesWhileALibraryIsLoaded_WaitsForTheProgramsHandler) {
  own_calls = foreign_calls = 0;
  handler_of(SIGTERM, [](int) { ++own_calls; });
  {
    const SignalHandlersKept kept;
    handler_of(SIGTERM, [](int) { ++foreign_calls; });
    ::raise(SIGTERM);
    EXPECT_EQ(own_calls, 0);
  }
  EXPECT_EQ(own_calls, 1);
  EXPECT_EQ(foreign_calls, 0);
  ::raise(SIGTERM);
  EXPECT_EQ(own_calls, 2);
  handler_of(SIGTERM, SIG_DFL);
}

TEST(SignalHandlers, ASignalThatTheProgramHadBlocked_StaysBlocked) {
  sigset_t blocked, now;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  { const SignalHandlersKept kept; }
  ::pthread_sigmask(SIG_UNBLOCK, &blocked, &now);
  EXPECT_EQ(::sigismember(&now, SIGUSR2), 1);
  EXPECT_EQ(::sigismember(&now, SIGTERM), 0);
}

}  // namespace
}  // namespace nessie
