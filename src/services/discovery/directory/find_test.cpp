// SPDX-License-Identifier: BSD-3-Clause
// find(): whatever a user may say.
#include <services/discovery/directory/client/find.hpp>

#include <services/discovery/contact/contact_file.hpp>

#include <gtest/gtest.h>

#include <services/discovery/directory/testing.hpp>

#include <cstdlib>
#include <filesystem>

namespace directory::testing {
namespace {

using nessie::service::ContactFile;
using nessie::service::Offer;

class Find : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override {
    ::unsetenv("NESSIE_FIND_TEST");
    std::filesystem::remove_all(folder_);
  }
  auto find(std::string_view what, Deadline deadline = soon()) {
    return directory::find(*seeker_.runtime, config_, what, deadline);
  }
  std::string path(const char *name) const { return folder_ + "/" + name; }
  void name_directory() { config_.set("directory", server_.runtime->url()); }
  ContactFile write(const std::string &at) {
    return *ContactFile::write(at, {"test", "shm://here", {{{7, 1}, 2}}, {}, 0});
  }

  std::string folder_ = "/tmp/nessie-find-XXXXXX";
  nessie::Config config_;
  DirectoryThread server_{"inproc"};
  Participant seeker_{"inproc", ""}, ada_{"inproc", server_.runtime->url()};
};

TEST_F(Find, AnAnnouncedName_HasWhatWasSaidOfIt) {
  name_directory();
  auto what = make("storage", 2);
  what.attributes.push_back({std::string("rank"), std::string("3")});
  const auto one = ada_.directory.announce(what, seconds(3600), soon());
  const auto two = ada_.directory.announce(make("storage", 5), seconds(3600), soon());
  ASSERT_TRUE(one.ok() && two.ok());
  const auto found = find("dir:storage");
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].url, "shm://somewhere");
  EXPECT_EQ((*found)[0].offers, (std::vector<Offer>{{{7, 1}, 2}}));
  EXPECT_EQ((*found)[0].attributes.front(), (std::pair<std::string, std::string>("rank", "3")));
  EXPECT_EQ((*found)[1].offers.front().provider, 5u);
}

TEST_F(Find, ANameThatIsAnnouncedLater_IsWaitedFor) {
  name_directory();
  nessie::Result<std::vector<nessie::service::Found>> found = Error{};
  std::atomic<bool> asked{false};
  std::thread seeker([&] {
    asked = true;
    found = find("dir:storage");
  });
  ASSERT_TRUE(eventually([&] { return asked.load(); }));
  const auto one = ada_.directory.announce(make("storage"), seconds(3600), soon());
  seeker.join();
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_EQ(found->size(), 1u);
}

TEST_F(Find, AllKindsInOneVariable) {
  name_directory();
  const auto one = ada_.directory.announce(make("storage"), seconds(3600), soon());
  const auto file = write(path("a.contact"));
  ::setenv("NESSIE_FIND_TEST", ("ofi://b:1 dir:storage file:" + file.path()).c_str(), 1);
  const auto found = find("env:NESSIE_FIND_TEST");
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].url, "ofi://b:1");
  EXPECT_EQ((*found)[1].url, "shm://somewhere");
  EXPECT_EQ((*found)[2].url, "shm://here");
  EXPECT_EQ((*found)[2].offers.front().provider, 2u);
}

TEST_F(Find, TheDirectoryItself_MayBeNamedByItsContactFile) {
  const auto file = *ContactFile::write(path("d"), {"directory", server_.runtime->url(), {}, {}, 0});
  config_.set("directory", "file:" + file.path());
  const auto one = ada_.directory.announce(make("storage"), seconds(3600), soon());
  EXPECT_TRUE(find("dir:storage").ok());
}

TEST_F(Find, WithinAFiber_OthersGoOn) {
  name_directory();
  std::atomic<bool> other_ran{false};
  Code code = Code::kInternal;
  std::atomic<bool> done{false};
  seeker_.runtime->spawn([&] {
    code = find("dir:nobody", Deadline::in(milliseconds(300))).code();
    done = true;
  });
  seeker_.runtime->spawn([&] {
    seeker_.runtime->sleep_until(Deadline::in(milliseconds(1)));
    other_ran = !done;
  });
  ASSERT_TRUE(eventually([&] {
    seeker_.runtime->sleep_until(Deadline::in(milliseconds(1)));
    return done.load();
  }));
  EXPECT_TRUE(other_ran);
  EXPECT_EQ(code, Code::kTimedOut);
}

TEST_F(Find, WhatIsNotThere_IsSaid) {
  const auto expect = [&](const char *what, Code code, const char *says) {
    const auto found = find(what, Deadline::in(milliseconds(50)));
    ASSERT_EQ(found.code(), code) << what;
    EXPECT_NE(found.error().message.find(says), std::string::npos) << found.error().message;
  };
  expect("dir:storage", Code::kNotFound, "NESSIE_DIRECTORY");
  name_directory();
  expect("dir:storage", Code::kTimedOut, "'storage'");
  expect("dir:", Code::kInvalidArgument, "name");
  expect("storage", Code::kInvalidArgument, "dir:NAME");
  expect("env:NESSIE_FIND_TEST", Code::kNotFound, "NESSIE_FIND_TEST");
  expect(("file:" + path("none")).c_str(), Code::kTimedOut, "none");
  config_.set("directory", "dir:directory");
  expect("dir:storage", Code::kInvalidArgument, "cannot be used here");
  config_.set("directory", "file:" + path("none"));
  expect("dir:storage", Code::kTimedOut, "none");
}

}  // namespace
}  // namespace directory::testing
