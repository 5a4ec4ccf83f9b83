// SPDX-License-Identifier: BSD-3-Clause
// The registry, at times that the tests make up.
#include "services/discovery/directory/server/registry.hpp"

#include <gtest/gtest.h>

namespace directory {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

secret key(int number) { return {static_cast<std::byte>(number), static_cast<std::byte>(number >> 8)}; }

instance make(const std::string &name, std::uint32_t provider = 0) {
  return {name, "shm://somewhere", 7, 1, provider, {}};
}

announcement say(int number, const std::string &name, std::uint32_t lease_ms = 10'000) {
  return {key(number), lease_ms, make(name, static_cast<std::uint32_t>(number))};
}

constexpr PeerId kAda{1}, kBob{2};
const query kAll{true, ""};
query named(const char *name) { return {false, std::string(name)}; }

class DirectoryRegistry : public testing::Test {
 protected:
  Result<grant> announce(PeerId caller, const announcement &said) { return registry_.announce(caller, said, now_); }
  void pass(Clock::duration time) { registry_.expire(now_ += time); }
  std::vector<std::uint32_t> providers(const query &query) const {
    std::vector<std::uint32_t> all;
    for (const auto &each : registry_.list(query)) all.push_back(each.provider);
    return all;
  }
  void limit(const RegistryLimits &limits) {
    registry_ = Registry(limits, [this](const std::string &name) { changes_.push_back(name); });
  }

  Clock::time_point now_ = Clock::time_point(seconds(1000));
  std::vector<std::string> changes_;
  Registry registry_{{}, [this](const std::string &name) { changes_.push_back(name); }};
};

TEST_F(DirectoryRegistry, ListsWhatIsAnnounced) {
  EXPECT_FALSE(announce(kAda, say(1, "b"))->was_known);
  EXPECT_FALSE(announce(kAda, say(2, "a"))->was_known);
  EXPECT_FALSE(announce(kBob, say(3, "b"))->was_known);
  EXPECT_EQ(providers(named("b")), (std::vector<std::uint32_t>{1, 3})) << "two instances of one name";
  EXPECT_EQ(providers(kAll), (std::vector<std::uint32_t>{2, 1, 3}));
  EXPECT_TRUE(providers(named("c")).empty());
  EXPECT_EQ(registry_.list(named("a")).front(), make("a", 2));
}

TEST_F(DirectoryRegistry, ListsByTheBeginningOfNames) {
  for (int i = 1; const auto *name : {"job/a", "job/b", "jobs", "k", "job"})
    ASSERT_TRUE(announce(kAda, say(i++, name)).ok());
  EXPECT_EQ(providers({true, std::string("job/")}), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(providers({true, std::string("job")}), (std::vector<std::uint32_t>{5, 1, 2, 3}));
}

TEST_F(DirectoryRegistry, ALeaseThatIsNotRenewed_RunsOut) {
  ASSERT_TRUE(announce(kAda, say(1, "a", 1000)).ok());
  ASSERT_TRUE(announce(kAda, say(2, "a", 2000)).ok());
  EXPECT_EQ(registry_.next_expiry().when(), now_ + milliseconds(1000));
  pass(milliseconds(999));
  EXPECT_EQ(providers(kAll).size(), 2u);
  pass(milliseconds(1));
  EXPECT_EQ(providers(kAll), std::vector<std::uint32_t>{2});
  pass(seconds(1));
  EXPECT_TRUE(providers(kAll).empty());
  EXPECT_TRUE(registry_.next_expiry().is_never());
}

TEST_F(DirectoryRegistry, ALeaseThatIsRenewed_GoesOn) {
  ASSERT_TRUE(announce(kAda, say(1, "a", 1000)).ok());
  for (int i = 0; i < 10; ++i) {
    pass(milliseconds(900));
    EXPECT_TRUE(announce(kAda, say(1, "a", 1000))->was_known);
  }
  EXPECT_EQ(providers(kAll).size(), 1u);
  EXPECT_EQ(registry_.generation(), 1u) << "a renewal is no change";
}

TEST_F(DirectoryRegistry, LeasesAreGrantedWithinLimits) {
  EXPECT_EQ(announce(kAda, say(1, "a", 1))->lease_ms, 100u);
  EXPECT_EQ(announce(kAda, say(1, "a", 5000))->lease_ms, 5000u);
  EXPECT_EQ(announce(kAda, say(1, "a", UINT32_MAX))->lease_ms, 3'600'000u);
}

TEST_F(DirectoryRegistry, ACallerThatIsLost_TakesItsInstancesAlong) {
  ASSERT_TRUE(announce(kAda, say(1, "a")).ok());
  ASSERT_TRUE(announce(kBob, say(2, "a")).ok());
  registry_.lose(kAda);
  EXPECT_EQ(providers(kAll), std::vector<std::uint32_t>{2});
}

TEST_F(DirectoryRegistry, WhoRenewsOverAnotherConnection_IsNotLostWithTheFirst) {
  ASSERT_TRUE(announce(kAda, say(1, "a")).ok());
  EXPECT_TRUE(announce(kBob, say(1, "a"))->was_known);
  registry_.lose(kAda);
  EXPECT_EQ(providers(kAll).size(), 1u);
  registry_.lose(kBob);
  EXPECT_TRUE(providers(kAll).empty());
}

TEST_F(DirectoryRegistry, Withdrawing_TakesTheKey) {
  ASSERT_TRUE(announce(kAda, say(1, "a")).ok());
  EXPECT_FALSE(registry_.withdraw(key(2)));
  EXPECT_TRUE(registry_.withdraw(key(1)));
  EXPECT_FALSE(registry_.withdraw(key(1)));
  EXPECT_TRUE(providers(kAll).empty());
  pass(seconds(100));
}

TEST_F(DirectoryRegistry, WhatIsAnnouncedOtherwise_Changes) {
  ASSERT_TRUE(announce(kAda, say(1, "a")).ok());
  auto other = say(1, "b");
  ASSERT_TRUE(announce(kAda, other).ok());
  EXPECT_TRUE(providers(named("a")).empty());
  other.what.attributes.push_back({std::string("rank"), std::string("7")});
  ASSERT_TRUE(announce(kAda, other).ok());
  EXPECT_EQ(registry_.list(named("b")).front().attributes.size(), 1u);
  EXPECT_EQ(changes_, (std::vector<std::string>{"a", "b", "a", "b"}));
}

TEST_F(DirectoryRegistry, ChangesAreSeenByThoseWhoAskedForThem) {
  ASSERT_TRUE(announce(kAda, say(1, "a")).ok());
  const auto seen = registry_.generation();
  EXPECT_FALSE(registry_.has_changed(named("a"), seen));
  ASSERT_TRUE(announce(kAda, say(2, "bc")).ok());
  EXPECT_FALSE(registry_.has_changed(named("a"), seen));
  EXPECT_FALSE(registry_.has_changed(named("b"), seen));
  for (const auto &query : {named("bc"), query{true, std::string("b")}, kAll})
    EXPECT_TRUE(registry_.has_changed(query, seen));
}

TEST_F(DirectoryRegistry, ANameThatVanished_HasChanged) {
  ASSERT_TRUE(announce(kAda, say(1, "a")).ok());
  const auto seen = registry_.generation();
  ASSERT_TRUE(registry_.withdraw(key(1)));
  EXPECT_TRUE(registry_.has_changed(named("a"), seen));
  EXPECT_FALSE(registry_.has_changed(named("a"), registry_.generation()));
}

TEST_F(DirectoryRegistry, NamesThatVanishedLongAgo_AreForgotten_AndNoChangeIsMissed) {
  limit({.vanished_names = 2});
  ASSERT_TRUE(announce(kAda, say(1, "a")).ok());
  const auto seen = registry_.generation();
  registry_.withdraw(key(1));
  for (int i = 2; i < 100; ++i) {
    ASSERT_TRUE(announce(kAda, say(i, "name" + std::to_string(i))).ok());
    registry_.withdraw(key(i));
  }
  EXPECT_TRUE(registry_.has_changed(named("a"), seen));
  EXPECT_FALSE(registry_.has_changed(named("a"), registry_.generation()));
  EXPECT_FALSE(registry_.has_changed({true, std::string("a")}, registry_.generation()));
}

TEST_F(DirectoryRegistry, EachCallerHasItsLimit) {
  limit({.entries = 5, .entries_per_caller = 3});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(announce(kAda, say(i, "a")).ok());
  const auto beyond = announce(kAda, say(3, "a"));
  EXPECT_EQ(beyond.code(), Code::kNoMemory);
  EXPECT_NE(beyond.error().message.find("entries_per_caller"), std::string::npos) << beyond.error().message;
  EXPECT_TRUE(announce(kAda, say(2, "a")).ok()) << "a renewal";
  for (int i = 3; i < 5; ++i) ASSERT_TRUE(announce(kBob, say(i, "a")).ok());
  EXPECT_EQ(announce(kBob, say(5, "a")).code(), Code::kNoMemory) << "the directory is full";
  EXPECT_EQ(registry_.size(), 5u);
  registry_.lose(kAda);
  EXPECT_TRUE(announce(kBob, say(5, "a")).ok());
}

TEST_F(DirectoryRegistry, WhatCannotBeAnnounced_ChangesNothing) {
  auto wrong = std::vector<announcement>(8, say(1, "a"));
  wrong[0].what.name = std::string();
  wrong[1].what.name = std::string("a b");
  wrong[2].what.name = std::string("a\x1b[2J");
  wrong[3].what.url = std::string("nowhere");
  wrong[4].what.url = std::string();
  wrong[5].what.attributes = std::vector<attribute>(2, {std::string("a"), std::string("b")});
  wrong[6].what.attributes.push_back({std::string("a"), std::string("\n")});
  wrong[7].what.attributes.push_back({std::string(), std::string("b")});
  for (const auto &each : wrong) EXPECT_EQ(announce(kAda, each).code(), Code::kInvalidArgument);
  EXPECT_EQ(registry_.size(), 0u);
  EXPECT_EQ(registry_.generation(), 0u);
}

}  // namespace
}  // namespace directory
