// SPDX-License-Identifier: BSD-3-Clause
// Under mpiexec, with three processes, none of which uses MPI: every process runs all tests; any that fails ends
// with 1.
#include <services/discovery/contact/launcher_name.hpp>
#include <services/discovery/contact/locate.hpp>
#include <services/discovery/contact/pmix.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>

namespace {

bool is_forked = false;

}  // namespace

/// LeakSanitizer's question: a child that was forked has none of the threads that it would look for leaks in.
extern "C" int __lsan_is_turned_off() { return is_forked ? 1 : 0; }

namespace nessie::service {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kProcesses = 3;

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value != nullptr ? value : "";
}
int rank() { return std::atoi(variable("PMIX_RANK").c_str()); }
Deadline soon() { return Deadline::in(seconds(20)); }
Contact contact() { return {"test", "shm://a;ofi://b:1", {{{7, 1}, 2}, {{8, 2}, 0}}, {}, 0}; }
std::string name_of(const std::string &what, int rank) { return what + "/" + std::to_string(rank); }

Result<LauncherName> publish(const std::string &name) { return LauncherName::publish(name, contact(), soon(), sleep); }
Code code_of(const std::string &name, Deadline deadline = Deadline::in(milliseconds(20))) {
  return wait_for_launcher_name(name, deadline, sleep).code();
}

/// Leaves a name to the launcher, which nobody withdraws.
void leave(const std::string &name, const ProcessId &process) {
  auto left = contact();
  left.process = process;
  const auto status = pmix::publish("nessie/" + name, *to_text(left), soon(), sleep);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
}

/// Returns when all processes have come so far. One that has ended meanwhile counts: it is said to be of another
/// machine.
void meet(const std::string &where) {
  auto elsewhere = this_process();
  elsewhere.host = elsewhere.boot = "another";
  leave(name_of(where, rank()), elsewhere);
  for (int other = 0; other < kProcesses; ++other) ASSERT_EQ(code_of(name_of(where, other), soon()), Code::kOk);
}

TEST(LauncherName, IsFoundByTheOthers_UntilItIsWithdrawn) {
  {
    std::optional<Result<LauncherName>> published;
    if (rank() == 0) published.emplace(publish("job/fields"));
    const auto found = locate("pmix:job/fields", soon(), sleep);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ(found->front().url, contact().url);
    EXPECT_EQ(found->front().offers, contact().offers);
    meet("found");
  }
  meet("withdrawn");
  EXPECT_EQ(code_of("job/fields"), Code::kTimedOut);
}

TEST(LauncherName, ThatAnotherProcessHas_IsRefused) {
  std::optional<Result<LauncherName>> first;
  if (rank() == 0) first.emplace(publish("taken"));
  ASSERT_EQ(code_of("taken", soon()), Code::kOk);
  if (rank() != 0) { EXPECT_EQ(publish("taken").code(), Code::kExists); }
  meet("refused");
}

TEST(LauncherName, OfAProcessThatIsGone_IsStale) {
  // The launcher ends a job whose member was killed; so what a process that has ended would have left is published
  // here.
  if (rank() == 0) {
    auto gone = this_process();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    gone.pid = child;
    leave("gone", gone);
  }
  meet("gone");
  EXPECT_EQ(code_of("gone"), Code::kPeerLost);
}

TEST(LauncherName, ThatHoldsSomethingElse_IsNotBelieved) {
  if (rank() == 0) { ASSERT_TRUE(pmix::publish("nessie/odd", "shm://a\n", soon(), sleep).ok()); }
  meet("odd");
  EXPECT_EQ(code_of("odd"), Code::kBadMessage);
}

TEST(LauncherName, ThatIsNone_IsRefused) {
  EXPECT_EQ(publish("a b").code(), Code::kInvalidArgument);
  EXPECT_EQ(code_of(""), Code::kInvalidArgument);
  EXPECT_EQ(code_of(std::string(129, 'a')), Code::kInvalidArgument);
}

TEST(LauncherName, OfAChildThatWasForked_IsItsParents) {
  const auto name = publish(name_of("parent", rank()));
  ASSERT_TRUE(name.ok());
  const pid_t child = ::fork();
  is_forked = child == 0;
  if (is_forked) std::exit(code_of(name_of("parent", rank()), soon()) == Code::kUnsupported ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(code_of(name_of("parent", rank())), Code::kOk);
}

TEST(LauncherName, OfALauncherThatDoesNotAnswer_EndsAtTheDeadline) {
  meet("running");
  if (rank() == 0) {
    ASSERT_EQ(::kill(::getppid(), SIGSTOP), 0);
    const auto begin = Clock::now();
    EXPECT_EQ(code_of("none", Deadline::in(milliseconds(300))), Code::kTimedOut);
    EXPECT_EQ(LauncherName::publish("x", contact(), Deadline::in(milliseconds(100)), sleep).code(), Code::kTimedOut);
    const auto took = Clock::now() - begin;
    ASSERT_EQ(::kill(::getppid(), SIGCONT), 0);
    EXPECT_LT(took, seconds(30));  // and not until it goes on
  }
  meet("running-again");
}

TEST(LauncherName, WithoutALauncher_IsRefused) {
  const auto space = variable("PMIX_NAMESPACE");
  ::unsetenv("PMIX_NAMESPACE");
  EXPECT_EQ(publish("a").code(), Code::kUnsupported);
  EXPECT_EQ(code_of("a"), Code::kUnsupported);
  ::setenv("PMIX_NAMESPACE", space.c_str(), 1);
}

}  // namespace
}  // namespace nessie::service

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
