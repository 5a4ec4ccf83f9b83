// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/contact/contact_file.hpp"

#include <base/file.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace nessie::service {
namespace {

using std::chrono::seconds;

class ContactFiles : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char *name = "a.contact") const { return folder_ + "/" + name; }
  static Contact contact() { return {"test", "shm://somewhere", {{{7, 1}, 2}}, {}, 0}; }
  ContactFile write() { return *ContactFile::write(path(), contact()); }
  /// As a service would that is another process, or of another machine.
  void leave(const std::function<void(Contact &)> &change) {
    auto left = contact();
    left.process = this_process();
    left.incarnation = 1;
    change(left);
    ASSERT_TRUE(write_private_file(path(), *to_text(left)).ok());
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  static void expect_stale(const Result<Contact> &read, const char *why) {
    ASSERT_EQ(read.code(), Code::kPeerLost);
    EXPECT_EQ(read.error().scope, Scope::kService);
    for (const auto *part : {"a.contact is stale", why, "start the service again"})
      EXPECT_NE(read.error().message.find(part), std::string::npos) << read.error().message;
  }

  std::string folder_ = "/tmp/nessie-contact-XXXXXX";
  const Pause no_pause_ = [](Clock::duration) { return Status(); };
};

TEST_F(ContactFiles, SayWhereTheServiceIs_UntilItIsDropped) {
  {
    const auto file = write();
    struct stat status {};
    ASSERT_EQ(::stat(path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
    const auto read = read_contact(path());
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, file.contact());
    EXPECT_EQ(read->process.pid, ::getpid());
    EXPECT_EQ(read->url, "shm://somewhere");
    EXPECT_NE(read->incarnation, 0u);
  }
  EXPECT_EQ(read_contact(path()).code(), Code::kNotFound);
  EXPECT_EQ(files(), 0u);
}

TEST_F(ContactFiles, OfAnotherService_StayWhenOursIsDropped) {
  std::optional<ContactFile> file(write());
  leave([](Contact &) {});
  file.reset();
  EXPECT_EQ(read_contact(path())->incarnation, 1u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(ContactFiles, AreNotRemovedByAForkedChild) {
  auto file = write();
  const auto child = ::fork();
  if (child == 0) {
    { const auto mine = std::move(file); }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(read_contact(path()).ok());
}

TEST_F(ContactFiles, OfAProcessThatHasEnded_AreStale) {
  const auto child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  leave([&](Contact &left) { left.process.pid = child; });
  expect_stale(read_contact(path()), "has ended");  // a zombie
  ::waitpid(child, nullptr, 0);
  expect_stale(read_contact(path()), "has ended");
}

TEST_F(ContactFiles, OfAProcessWhoseNumberAnotherHas_AreStale) {
  leave([](Contact &left) { left.process.started += 1; });
  expect_stale(read_contact(path()), "another process has its number");
}

TEST_F(ContactFiles, OfBeforeTheMachineWasStarted_AreStale) {
  leave([](Contact &left) { left.process.boot = "another"; });
  expect_stale(read_contact(path()), "has been started anew");
}

TEST_F(ContactFiles, OfOtherMachinesAndContainers_AreBelieved) {
  leave([](Contact &left) { left.process = {"elsewhere", "another", 1, 99999999, 1}; });
  EXPECT_TRUE(read_contact(path()).ok());
  leave([](Contact &left) { left.process.pid_space += 1, left.process.pid = 99999999; });
  EXPECT_TRUE(read_contact(path()).ok());
}

TEST_F(ContactFiles, OfARunningService_AreNotTakenOver_StaleOnesAre) {
  const auto file = write();
  const auto second = ContactFile::write(path(), contact());
  ASSERT_EQ(second.code(), Code::kExists);
  EXPECT_NE(second.error().message.find("runs"), std::string::npos) << second.error().message;
  EXPECT_EQ(*read_contact(path()), file.contact());
  leave([](Contact &left) { left.process.started += 1; });
  EXPECT_TRUE(ContactFile::write(path(), contact()).ok());
}

TEST_F(ContactFiles, DoNotReplaceWhatIsNone) {
  std::ofstream(path()) << "my thesis";
  EXPECT_EQ(ContactFile::write(path(), contact()).code(), Code::kExists);
  EXPECT_EQ(*read_file(path()), "my thesis");
  std::ofstream(path("empty")).close();
  EXPECT_TRUE(ContactFile::write(path("empty"), contact()).ok());
  EXPECT_EQ(ContactFile::write(folder_, contact()).code(), Code::kExists);
  EXPECT_EQ(ContactFile::write(path("none/a"), contact()).code(), Code::kIo);
  EXPECT_EQ(ContactFile::write(path("b"), Contact{}).code(), Code::kInvalidArgument);
  EXPECT_EQ(files(), 1u);
}

TEST_F(ContactFiles, ThatAreNoPlainFiles_AreRefusedAtOnce) {
  const auto file = write();
  std::filesystem::create_symlink(path(), path("link"));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  for (const auto &wrong : {path("link"), path("fifo"), folder_}) {
    const auto read = wait_for_contact(wrong, Deadline::never(), no_pause_);
    ASSERT_EQ(read.code(), Code::kRefused) << wrong;
    EXPECT_NE(read.error().message.find(wrong), std::string::npos) << read.error().message;
  }
}

TEST_F(ContactFiles, ThatAreMalformedOrHuge_AreRefusedAtOnce) {
  ASSERT_TRUE(write_private_file(path(), "nessie-contact 1\nservice = ").ok());
  const auto malformed = wait_for_contact(path(), Deadline::never(), no_pause_);
  ASSERT_EQ(malformed.code(), Code::kBadMessage);
  EXPECT_NE(malformed.error().message.find(path()), std::string::npos) << malformed.error().message;
  std::filesystem::resize_file(path(), std::uintmax_t{1} << 40);  // sparse
  EXPECT_EQ(wait_for_contact(path(), Deadline::never(), no_pause_).code(), Code::kTooLarge);
}

TEST_F(ContactFiles, AreWaitedFor) {
  std::optional<ContactFile> file;
  const auto found = wait_for_contact(path(), Deadline::in(seconds(60)), [&](Clock::duration) {
    if (!file) file.emplace(write());
    return Status();
  });
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(*found, file->contact());
}

TEST_F(ContactFiles, ThatAreStale_AreWaitedForUntilTheyAreWrittenAnew) {
  leave([](Contact &left) { left.process.started += 1; });
  std::optional<ContactFile> file;
  const auto found = wait_for_contact(path(), Deadline::in(seconds(60)), [&](Clock::duration) {
    if (!file) file.emplace(write());
    return Status();
  });
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(*found, file->contact());
}

TEST_F(ContactFiles, AreNotWaitedForWhenTimeCannotPass) {
  const auto none = wait_for_contact(path(), Deadline::never(), [](Clock::duration) -> Status {
    return Error{Code::kCancelled, "the end"};
  });
  EXPECT_EQ(none.code(), Code::kCancelled);
}

TEST_F(ContactFiles, ThatDoNotAppear_AreTimedOutWithTheirName) {
  const auto none = wait_for_contact(path(), Deadline::now(), no_pause_);
  ASSERT_EQ(none.code(), Code::kTimedOut);
  EXPECT_NE(none.error().message.find(path()), std::string::npos) << none.error().message;
  leave([](Contact &left) { left.process.started += 1; });
  expect_stale(wait_for_contact(path(), Deadline::now(), no_pause_), "another process");
}

}  // namespace
}  // namespace nessie::service
