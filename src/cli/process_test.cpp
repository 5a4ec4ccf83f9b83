// SPDX-License-Identifier: BSD-3-Clause
#include "process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace nessie::cli {
namespace {

using std::chrono::seconds;

class Process : public testing::Test {
 protected:
  static Signals &signals() {
    static Result<Signals> opened = Signals::open();
    return opened.value();
  }
  static SpawnOptions command(std::vector<std::string> words) {
    SpawnOptions options;
    options.command = std::move(words);
    options.environment = Environment::current();
    return options;
  }
  static int wait_for(pid_t pid) {
    int wait_status = 0;
    EXPECT_EQ(waitpid(pid, &wait_status, 0), pid);
    return wait_status;
  }
  /// Sends it to this process, and waits for the event.
  static std::optional<Signal> signal_after(int number) {
    kill(getpid(), number);
    const auto deadline = Deadline::in(std::chrono::seconds(30));
    std::optional<Signal> signal;
    do signal = signals().wait(deadline);
    while (!deadline.passed() && (!signal || signal->number == SIGCHLD));
    return signal;
  }
};

TEST_F(Process, ThatExits_HasItsExitCode) {
  const auto pid = spawn(command({"sh", "-c", "exit 7"}), signals());
  ASSERT_TRUE(pid);
  EXPECT_EQ(exit_code_of(wait_for(*pid)), 7);
}

TEST_F(Process, ThatIsAwaited_HasItsOwnStatus) {
  const auto pid = spawn(command({"sh", "-c", "exit 7"}));
  ASSERT_TRUE(pid);
  EXPECT_EQ(exit_code_of(await_end(*pid)), 7);
  EXPECT_EQ(spawn(command({"/no/such/program"})).code(), Code::kNotFound);
}

TEST_F(Process, ThatIsKilled_HasTheCodeThatAShellSays) {
  const auto pid = spawn(command({"sh", "-c", "kill -9 $$"}), signals());
  ASSERT_TRUE(pid);
  const int wait_status = wait_for(*pid);
  EXPECT_EQ(exit_code_of(wait_status), 137);
  EXPECT_EQ(describe_wait_status(wait_status), "was killed by signal 9 (Killed)");
}

TEST_F(Process, ThatDoesNotExist_IsAnErrorWithItsName) {
  const auto pid = spawn(command({"/no/such/program"}), signals());
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.code(), Code::kNotFound);
  EXPECT_EQ(pid.error().cause, ENOENT);
  EXPECT_NE(pid.error().message.find("/no/such/program"), std::string::npos);
}

TEST_F(Process, StartsWithTheSignalsOfItsParentNotWithOurs) {
  const auto pid = spawn(command({"sh", "-c", "kill -TERM $$; sleep 60"}), signals());
  ASSERT_TRUE(pid);
  EXPECT_EQ(exit_code_of(wait_for(*pid)), 128 + SIGTERM);
}

TEST_F(Process, WhoseParentDied_BecomesOurChild) {
  become_reaper();
  const auto pid = spawn(command({"sh", "-c", "sleep 60 & exit 0"}), signals());
  ASSERT_TRUE(pid);
  wait_for(*pid);
  auto orphans = children();
  ASSERT_EQ(orphans.size(), 1u);
  EXPECT_EQ(kill(orphans[0], SIGKILL), 0);
  EXPECT_EQ(exit_code_of(wait_for(orphans[0])), 137);
  EXPECT_TRUE(children().empty());
}

TEST_F(Process, SignalsAreEvents) {
  for (const int number : {SIGUSR1, SIGURG, SIGXCPU, SIGRTMIN + 3}) {
    const auto signal = signal_after(number);
    ASSERT_TRUE(signal);
    EXPECT_EQ(signal->number, number);
    EXPECT_FALSE(signal->from_terminal || signal->was_ignored || signal->repeated);
  }
}

TEST_F(Process, ASignalThatItsSenderSendsTwice_IsRepeated_AndAnotherIsNot) {
  EXPECT_FALSE(signal_after(SIGTERM)->repeated);
  EXPECT_TRUE(signal_after(SIGTERM)->repeated);
  EXPECT_FALSE(signal_after(SIGINT)->repeated);
}

TEST_F(Process, WhatAProgramPrintsOnEitherStream_IsRead) {
  const auto text =
      output_of(command({"sh", "-c", "echo out; echo err >&2; cat"}), Deadline::in(seconds(30)), &signals());
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "out\nerr\n");
  EXPECT_EQ(output_of(command({"/absent"}), Deadline::in(seconds(30)), &signals()).code(), Code::kNotFound);
}

TEST_F(Process, ThatPrintsForTooLong_IsEnded) {
  EXPECT_EQ(output_of(command({"sleep", "300"}), Deadline::in(std::chrono::milliseconds(20)), &signals()).code(),
            Code::kTimedOut);
}

TEST_F(Process, WhatItsOwnWritesRaise_IsNoEvent) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  close(ends[1]);
  EXPECT_EQ(signal_after(SIGUSR2)->number, SIGUSR2);
}

}  // namespace
}  // namespace nessie::cli
