// SPDX-License-Identifier: BSD-3-Clause
#include "process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

namespace nessie::cli {
namespace {

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
};

TEST_F(Process, ThatExits_HasItsExitCode) {
  const auto pid = spawn(command({"sh", "-c", "exit 7"}), signals());
  ASSERT_TRUE(pid);
  EXPECT_EQ(exit_code_of(wait_for(*pid)), 7);
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
  kill(getpid(), SIGUSR1);
  std::optional<Signal> signal;
  do signal = signals().wait(Deadline::in(std::chrono::seconds(30)));
  while (signal && signal->number == SIGCHLD);
  ASSERT_TRUE(signal);
  EXPECT_EQ(signal->number, SIGUSR1);
  EXPECT_FALSE(signal->from_terminal);
}

}  // namespace
}  // namespace nessie::cli
