// SPDX-License-Identifier: BSD-3-Clause
// Daemons and registrants in processes of their own, which are killed.
#include <gtest/gtest.h>

#include <services/discovery/contact/contact_file.hpp>
#include <services/discovery/directory/testing.hpp>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace directory::testing {
namespace {

using nessie::service::read_contact;
using nssi::testing::Process;

/// The exit code of a child, which stays to be reaped; -1: it does not end, or not by itself.
int exit_code_of(pid_t pid) {
  siginfo_t info{};
  const auto has_ended = [&] {
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
  };
  return eventually(has_ended) && info.si_code == CLD_EXITED ? info.si_status : -1;
}

class DirectoryProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nssi::testing::available("shm")) GTEST_SKIP() << "this machine has no transport shm";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    start();
  }
  void TearDown() override {
    registrant_.reset();
    daemon_.reset();
    std::filesystem::remove_all(folder_);
  }
  void start(const std::string &transport = "shm") {
    daemon_.emplace(std::vector<std::string>{NESSIE_DIRECTORY_PROGRAM, "--contact", contact(), "--listen", transport});
    ASSERT_TRUE(eventually([&] {
      const auto read = read_contact(contact());
      return read.ok() && read->process.pid == daemon_->pid();
    })) << "it did not write its contact file";
  }
  void announce(const std::string &name, int lease_ms) {
    registrant_.emplace(std::vector<std::string>{DIRECTORY_TEST_PEER, where(), name, std::to_string(lease_ms)});
    ASSERT_EQ(registrant_->line(), "announced");
  }
  std::string contact() const { return folder_ + "/directory.contact"; }
  std::string where() const { return "file:" + contact(); }

  std::string folder_ = "/tmp/nessie-directory-XXXXXX";
  std::optional<Process> daemon_, registrant_;
};

TEST_F(DirectoryProcesses, AKilledRegistrant_IsGoneLongBeforeItsLease) {
  Participant seeker("shm", where());
  announce("a", 3'600'000);
  const auto seen = seeker.directory.lookup("a", soon());
  ASSERT_EQ(seen->instances.size(), 1u);
  registrant_->kill_now();
  const auto later = seeker.directory.watch(named("a"), seen->at, soon());
  ASSERT_TRUE(later.ok()) << later.error().to_string();
  EXPECT_TRUE(later->instances.empty());
}

TEST_F(DirectoryProcesses, ARegistrantThatHangs_IsGoneWhenItsLeaseRunsOut_AndComesBack) {
  Participant seeker("shm", where());
  announce("a", 3000);
  ASSERT_EQ(seeker.count("a"), 1u);
  ::kill(registrant_->pid(), SIGSTOP);
  EXPECT_TRUE(eventually([&] { return seeker.count("a") == 0; }));
  ::kill(registrant_->pid(), SIGCONT);
  EXPECT_TRUE(eventually([&] { return seeker.count("a") == 1; }));
}

TEST_F(DirectoryProcesses, ADirectoryThatIsKilledAndStartedAnew_KnowsAllNamesAgain) {
  Participant seeker("shm", where()), own("shm", where(), true);
  announce("a", 3000);
  const auto registration = own.directory.announce(make("b"), milliseconds(3000), soon());
  ASSERT_TRUE(registration.ok());
  const auto before = seeker.directory.list("", soon());
  ASSERT_EQ(before->instances.size(), 2u);
  daemon_->kill_now();
  EXPECT_EQ(read_contact(contact()).code(), Code::kPeerLost) << "its contact file is not seen to be stale";
  EXPECT_FALSE(seeker.directory.lookup("a", Deadline::in(milliseconds(50))).ok());
  start();
  EXPECT_TRUE(eventually([&] { return seeker.count("a") == 1 && seeker.count("b") == 1; }));
  EXPECT_NE(seeker.directory.list("", soon())->at.incarnation, before->at.incarnation);
  EXPECT_TRUE(eventually([&] { return registration->status().ok(); }));
}

TEST_F(DirectoryProcesses, AWatchGoesOnWithADirectoryThatWasStartedAnew) {
  Participant watcher("shm", where(), true);
  announce("a", 3000);
  const auto seen = watcher.directory.lookup("a", soon());
  ASSERT_EQ(seen->instances.size(), 1u);
  std::atomic<bool> is_back{false};
  std::thread watch([&] {
    for (auto last = *seen; !is_back;) {
      const auto got = watcher.directory.watch(named("a"), last.at, soon());
      if (!got.ok()) return;
      last = *got;
      is_back = last.at.incarnation != seen->at.incarnation && last.instances.size() == 1;
    }
  });
  daemon_->kill_now();
  start();
  watch.join();
  EXPECT_TRUE(is_back);
}

TEST_F(DirectoryProcesses, Sigterm_EndsTheDirectoryInOrder) {
  ASSERT_EQ(::kill(daemon_->pid(), SIGTERM), 0);
  EXPECT_EQ(exit_code_of(daemon_->pid()), 0);
  EXPECT_EQ(read_contact(contact()).code(), Code::kNotFound);
}

TEST_F(DirectoryProcesses, Sigterm_AnswersWhoWatches) {
  Participant watcher("shm", where());
  const auto peer = watcher.runtime->connect(read_contact(contact())->url, soon());
  ASSERT_TRUE(peer.ok());
  Client client(*watcher.runtime, *peer);
  const auto seen = client.LIST(named("a"));
  auto watch = client.WATCH_async(named("a"), seen->at, 600'000, {.deadline = soon()});
  ASSERT_TRUE(client.LIST(named("a")).ok());
  ASSERT_EQ(::kill(daemon_->pid(), SIGTERM), 0);
  EXPECT_EQ(watch.wait().code(), Code::kUnavailable);
  EXPECT_EQ(exit_code_of(daemon_->pid()), 0);
}

TEST_F(DirectoryProcesses, ASecondDirectory_DoesNotTakeTheContactFileOfTheFirst) {
  const auto first = *read_contact(contact());
  Process second({NESSIE_DIRECTORY_PROGRAM, "--contact", contact(), "--listen", "shm"});
  EXPECT_EQ(exit_code_of(second.pid()), 2);
  EXPECT_EQ(*read_contact(contact()), first);
}

/// One that nobody has just now.
std::string free_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr *>(&address), size), 0);
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size), 0);
  ::close(fd);
  return std::to_string(ntohs(address.sin_port));
}

/// A setting of the processes that are started.
class Setting {
 public:
  Setting(const char *name, const std::string &value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting &) = delete;

 private:
  const char *name_;
};

TEST_F(DirectoryProcesses, OverANetwork_OneThatIsStartedAnewAtTheSameUrl_KnowsAllNamesAgain) {
  if (!nssi::testing::available("ofi")) GTEST_SKIP() << "this machine has no transport ofi";
  daemon_.reset();
  const Setting settings[] = {{"NESSIE_NNTI_OFI_PORT", free_port()},
                              {"NESSIE_NNTI_OFI_ADDRESS", "127.0.0.1"},
                              {"NESSIE_NNTI_OFI_PROVIDER", "tcp"}};
  start("ofi");
  ASSERT_FALSE(HasFatalFailure());
  const auto url = read_contact(contact())->url;
  Participant seeker("ofi", url), own("ofi", url, true);
  const auto registration = own.directory.announce(make("a"), milliseconds(3000), soon());
  ASSERT_TRUE(registration.ok()) << registration.error().to_string();
  ASSERT_EQ(seeker.count("a"), 1u);
  daemon_->kill_now();
  start("ofi");
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(read_contact(contact())->url, url);
  EXPECT_TRUE(eventually([&] { return seeker.count("a") == 1; }));
}

}  // namespace
}  // namespace directory::testing
