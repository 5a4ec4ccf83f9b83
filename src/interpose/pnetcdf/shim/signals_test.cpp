// SPDX-License-Identifier: BSD-3-Clause
// sigaction() and its like as this library has them, in front of this program's own. Runs with NESSIE_SERVERS set.
extern "C" {
#include "signals.h"
#include "library.h"
#include "shim.h"
}

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

namespace {

volatile sig_atomic_t is_inside, calls;
int values[100];
sigjmp_buf place;

void count(int) { calls = calls + 1; }
void note_value(int, siginfo_t *info, void *) {
  values[calls] = info->si_value.sival_int;
  calls = calls + 1;
}
void jump(int) { siglongjmp(place, 1); }

struct sigaction with_info(int flags) {
  struct sigaction action = {};
  action.sa_sigaction = note_value;
  action.sa_flags = SA_SIGINFO | flags;
  sigaddset(&action.sa_mask, SIGUSR2);
  return action;
}

void send(int number, int value) {
  sigval content;
  content.sival_int = value;
  ASSERT_EQ(sigqueue(getpid(), number, content), 0);
}

sighandler_t as_plain(void (*handler)(int, siginfo_t *, void *)) {
  return reinterpret_cast<sighandler_t>(reinterpret_cast<void *>(handler));
}

}  // namespace

struct Signals : testing::Test {
  void SetUp() override {
    is_inside = 0;
    calls = 0;
  }
  void TearDown() override {
    for (const int number : {SIGUSR1, SIGPROF, SIGRTMIN}) signal(number, SIG_DFL);
  }
  void enter() { is_inside = 1; }
  void leave() {
    is_inside = 0;
    nessie_release_signals();
  }
};

// What signals.c asks the rest of the library.
int nessie_shim_is_inside(void) { return is_inside; }
void *nessie_real_dlsym(void *handle, const char *name) { return dlsym(handle, name); }

TEST_F(Signals, AreHandledAtOnceOutside) {
  signal(SIGUSR1, count);
  raise(SIGUSR1);
  EXPECT_EQ(calls, 1);
}

TEST_F(Signals, ComeWhenTheEngineIsLeft) {
  signal(SIGUSR1, count);
  enter();
  raise(SIGUSR1);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(nessie_held_signals, 1);
  leave();
  EXPECT_EQ(calls, 1);
  leave();
  EXPECT_EQ(calls, 1);
}

TEST_F(Signals, OfTheOldOnesOneIsPendingAtMost) {
  signal(SIGUSR1, count);
  enter();
  raise(SIGUSR1);
  raise(SIGUSR1);
  leave();
  EXPECT_EQ(calls, 1);
}

TEST_F(Signals, OfTheNewOnesAllComeInOrderWithTheirValues) {
  const auto action = with_info(0);
  sigaction(SIGRTMIN, &action, nullptr);
  enter();
  for (int value = 0; value < 64; ++value) send(SIGRTMIN, value);
  EXPECT_EQ(calls, 0);
  leave();
  ASSERT_EQ(calls, 64);
  for (int value = 0; value < 64; ++value) EXPECT_EQ(values[value], value);
}

TEST_F(Signals, WhatFindsNoRoomIsHandledAtOnce) {
  const auto action = with_info(0);
  sigaction(SIGRTMIN, &action, nullptr);
  enter();
  for (int value = 0; value < 70; ++value) send(SIGRTMIN, value);
  EXPECT_EQ(calls, 6);
  leave();
  EXPECT_EQ(calls, 70);
}

TEST_F(Signals, ThoseOfAProfilerAreNotHeld) {
  signal(SIGPROF, count);
  enter();
  raise(SIGPROF);
  EXPECT_EQ(calls, 1);
  leave();
  EXPECT_EQ(calls, 1);
}

TEST_F(Signals, WaitForTheEngineThreeSecondsOnly) {
  const auto action = with_info(0);
  sigaction(SIGRTMIN, &action, nullptr);
  enter();
  send(SIGRTMIN, 7);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (calls == 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(values[0], 7);
  EXPECT_EQ(nessie_held_signals, 0);
  leave();
  EXPECT_EQ(calls, 1);
}

TEST_F(Signals, AHandlerMayJumpOutAndTheNextOneComes) {
  signal(SIGUSR1, jump);
  if (sigsetjmp(place, 1) == 0) {
    enter();
    raise(SIGUSR1);
    leave();
    FAIL() << "the handler was not called";
  }
  EXPECT_EQ(nessie_held_signals, 0);
  signal(SIGUSR1, count);
  enter();
  raise(SIGUSR1);
  leave();
  EXPECT_EQ(calls, 1);
}

TEST_F(Signals, WhatTheProgramAskedForIsWhatItIsTold) {
  const auto action = with_info(SA_RESTART | SA_NODEFER);
  struct sigaction old = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  ASSERT_EQ(sigaction(SIGUSR1, nullptr, &old), 0);
  EXPECT_EQ(old.sa_sigaction, note_value);
  EXPECT_EQ(old.sa_flags & (SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_RESETHAND), SA_SIGINFO | SA_RESTART | SA_NODEFER);
  EXPECT_TRUE(sigismember(&old.sa_mask, SIGUSR2));
  EXPECT_EQ(signal(SIGUSR1, count), as_plain(note_value));
  EXPECT_EQ(signal(SIGUSR1, SIG_IGN), count);
  EXPECT_EQ(signal(SIGUSR1, count), SIG_IGN);
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
  EXPECT_EQ(old.sa_handler, count);
  EXPECT_EQ(old.sa_flags & (SA_SIGINFO | SA_RESTART | SA_RESETHAND), SA_RESTART);
  EXPECT_EQ(ssignal(SIGUSR1, count), as_plain(note_value));
}

TEST_F(Signals, WhoHandsOnWhatWeGaveHimChangesNothing) {
  signal(SIGUSR1, count);
  decltype(&sigaction) behind = nullptr;
  *reinterpret_cast<void **>(&behind) = dlsym(RTLD_NEXT, "sigaction");
  struct sigaction ours = {};
  ASSERT_EQ(behind(SIGUSR1, nullptr, &ours), 0);
  ASSERT_EQ(sigaction(SIGUSR1, &ours, nullptr), 0);
  raise(SIGUSR1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(signal(SIGUSR1, SIG_DFL), count);
}

TEST_F(Signals, WhatIsRefusedChangesNothing) {
  signal(SIGUSR1, count);
  auto action = with_info(0);
  EXPECT_EQ(sigaction(SIGKILL, &action, nullptr), -1);
  EXPECT_EQ(sigaction(1000, &action, nullptr), -1);
  EXPECT_EQ(sigaction(-1, &action, nullptr), -1);
  EXPECT_EQ(signal(SIGSTOP, count), SIG_ERR);
  raise(SIGUSR1);
  EXPECT_EQ(calls, 1);
}

TEST_F(Signals, AHandlerForOneTimeIsCalledOnce) {
  const auto once = with_info(SA_RESETHAND);
  struct sigaction old = {};
  sigaction(SIGRTMIN, &once, nullptr);
  sigaction(SIGRTMIN, nullptr, &old);
  EXPECT_NE(old.sa_flags & SA_RESETHAND, 0);
  enter();
  send(SIGRTMIN, 3);
  leave();
  EXPECT_EQ(calls, 1);
  sigaction(SIGRTMIN, nullptr, &old);
  EXPECT_EQ(old.sa_handler, SIG_DFL);
  EXPECT_EQ(sysv_signal(SIGUSR1, count), SIG_DFL);
  raise(SIGUSR1);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(signal(SIGUSR1, count), SIG_DFL);
}

TEST_F(Signals, ASecondOneEndsWhoHandlesOneOnly) {
  const auto handle_one = [] {
    const auto once = with_info(SA_RESETHAND);
    sigaction(SIGRTMIN, &once, nullptr);
    is_inside = 1;
    send(SIGRTMIN, 1);
    send(SIGRTMIN, 2);
    is_inside = 0;
    nessie_release_signals();
  };
  EXPECT_EXIT(handle_one(), testing::KilledBySignal(SIGRTMIN), "");
}

TEST_F(Signals, EachThreadHasItsOwn) {
  signal(SIGUSR1, count);
  enter();
  raise(SIGUSR1);
  std::thread([] {
    EXPECT_EQ(nessie_held_signals, 0);
    nessie_release_signals();
  }).join();
  EXPECT_EQ(calls, 0);
  leave();
  EXPECT_EQ(calls, 1);
}
