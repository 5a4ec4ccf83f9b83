// SPDX-License-Identifier: BSD-3-Clause
// The directory's promises, over transports of this machine.
#include <gtest/gtest.h>

#include <services/discovery/directory/testing.hpp>

#include <atomic>

namespace directory::testing {
namespace {

constexpr milliseconds kShort{300}, kLong{3'600'000};

class DirectoryService : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!nssi::testing::available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    start();
  }
  void start(ServerLimits limits = {}) { server_ = std::make_unique<DirectoryThread>(GetParam(), limits); }
  std::unique_ptr<Participant> join(bool drives = false) {
    return std::make_unique<Participant>(GetParam(), server_->runtime->url(), drives);
  }
  std::unique_ptr<DirectoryThread> server_;
};

TEST_P(DirectoryService, ListsWhatIsAnnounced) {
  auto ada = join(), bob = join();
  auto what = make("job/storage", 3);
  what.attributes.push_back({std::string("rank"), std::string("0 of 4")});
  const auto registration = ada->directory.announce(what, kLong, soon());
  ASSERT_TRUE(registration.ok()) << registration.error().to_string();
  EXPECT_TRUE(registration->status().ok());
  const auto found = bob->directory.lookup("job/storage", soon());
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  ASSERT_EQ(found->instances.size(), 1u);
  EXPECT_EQ(found->instances.front(), what);
  EXPECT_EQ(bob->directory.list("job/", soon())->instances.size(), 1u);
  EXPECT_EQ(bob->directory.list("", soon())->instances.size(), 1u);
  EXPECT_EQ(bob->count("job/other"), 0u) << "what is not there is no error";
}

TEST_P(DirectoryService, TwoWhoAnnounceOneName_AreTwoInstances) {
  auto ada = join(), bob = join();
  const auto one = ada->directory.announce(make("a", 1), kLong, soon());
  ASSERT_TRUE(one.ok());
  {
    const auto two = bob->directory.announce(make("a", 2), kLong, soon());
    ASSERT_TRUE(two.ok());
    EXPECT_EQ(ada->count("a"), 2u);
  }
  EXPECT_TRUE(eventually([&] { return ada->count("a") == 1; }));
  EXPECT_EQ(ada->directory.lookup("a", soon())->instances.front().provider, 1u);
}

TEST_P(DirectoryService, ALeaseIsRenewedByWhoDrives) {
  auto ada = join(true), bob = join();
  const auto registration = ada->directory.announce(make("a"), kShort, soon());
  ASSERT_TRUE(registration.ok());
  // On a machine that has much else to do a renewal may be late, now and then; without renewals all this never holds.
  EXPECT_TRUE(eventually([&] {
    const auto seen = bob->directory.lookup("a", soon());
    const auto later = bob->directory.watch(named("a"), seen->at, Deadline::in(3 * kShort));
    return later.ok() && later->at == seen->at && later->instances.size() == 1;
  }));
}

TEST_P(DirectoryService, WhoDoesNotDrive_IsNotListed_AndIsListedAgainWhenHeDoes) {
  auto ada = join(), bob = join();
  const auto registration = ada->directory.announce(make("a"), kShort, soon());
  ASSERT_TRUE(registration.ok());
  EXPECT_TRUE(eventually([&] { return bob->count("a") == 0; })) << "the lease did not run out";
  EXPECT_TRUE(eventually([&] {
    (void)ada->count("b");  // a call drives
    return bob->count("a") == 1;
  }));
}

TEST_P(DirectoryService, WhatIsWithdrawn_IsGone) {
  auto ada = join(), bob = join();
  auto registration = ada->directory.announce(make("a"), kLong, soon());
  ASSERT_TRUE(registration.ok());
  EXPECT_TRUE(registration->withdraw(soon()).ok());
  EXPECT_EQ(bob->count("a"), 0u);
  EXPECT_EQ(registration->withdraw(soon()).code(), Code::kNotFound);
}

TEST_P(DirectoryService, AProcessThatLeaves_TakesItsNamesAlong) {
  auto ada = join();
  const auto seen = ada->directory.list("", soon())->at;
  {
    auto bob = join();
    const auto peer = bob->runtime->connect(server_->runtime->url(), soon());  // as who never withdraws
    const announcement said{{}, 3'600'000, make("a")};
    ASSERT_TRUE(Client(*bob->runtime, *peer).ANNOUNCE(said).ok());
    ASSERT_EQ(ada->directory.watch(named("a"), seen, soon())->instances.size(), 1u);
  }
  EXPECT_TRUE(eventually([&] { return ada->count("a") == 0; }));
}

TEST_P(DirectoryService, WatchersAreWokenByTheirNameOnly) {
  auto ada = join(), bob = join(true), eve = join(true);
  const auto seen = ada->directory.list("", soon())->at;
  std::atomic<int> woken{0};
  const auto watch = [&](Participant &who, const std::string &name) {
    return std::thread([&who, &woken, seen, name] {
      const auto got = who.directory.watch(named(name), seen, soon());
      if (got.ok() && got->instances.size() == 1 && got->instances.front().name == name) ++woken;
    });
  };
  auto for_a = watch(*bob, "a"), for_b = watch(*eve, "b");
  const auto a = ada->directory.announce(make("a"), kLong, soon());
  for_a.join();
  EXPECT_EQ(woken, 1);
  const auto b = ada->directory.announce(make("b"), kLong, soon());
  for_b.join();
  EXPECT_EQ(woken, 2);
}

TEST_P(DirectoryService, ManyWatchersAreWokenAtOnce) {
  constexpr int kWatchers = 500;
  start({.registry = {}, .watches = 1000, .watches_per_caller = 1000});
  auto ada = join(), bob = join();
  const auto peer = bob->runtime->connect(server_->runtime->url(), soon());
  ASSERT_TRUE(peer.ok());
  Client client(*bob->runtime, *peer);
  const auto seen = client.LIST(named("a"))->at;
  std::vector<nssi::Future<listing>> watches;
  nssi::CallOptions options;
  options.deadline = Deadline::in(seconds(60));
  for (int i = 0; i < kWatchers; ++i) watches.push_back(client.WATCH_async(named("a"), seen, 60'000, options));
  EXPECT_TRUE(client.LIST(named("a")).ok()) << "they hold nobody up";
  EXPECT_FALSE(watches.back().test());
  const auto registration = ada->directory.announce(make("a"), kLong, soon());
  ASSERT_TRUE(registration.ok());
  for (auto &watch : watches) {
    const auto got = watch.wait();
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_EQ(got->instances.size(), 1u);
  }
}

TEST_P(DirectoryService, AWatchEndsAtItsDeadlineWithWhatThereIs) {
  auto ada = join();
  const auto registration = ada->directory.announce(make("a"), kLong, soon());
  const auto seen = ada->directory.watch(named("a"), {}, Deadline::never());
  ASSERT_TRUE(seen.ok()) << "a first look does not wait";
  const auto deadline = Deadline::in(milliseconds(200));
  const auto again = ada->directory.watch(named("a"), seen->at, deadline);
  EXPECT_TRUE(deadline.passed()) << "it did not wait";
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *seen);
}

TEST_P(DirectoryService, AWatchWithoutTime_EndsAtOnce) {
  auto ada = join();
  ASSERT_EQ(ada->count("a"), 0u);  // there is a connection
  EXPECT_EQ(ada->directory.watch(named("a"), {}, Deadline::now()).code(), Code::kTimedOut);
}

TEST_P(DirectoryService, AWatchSeesLeasesRunOut) {
  auto ada = join(), bob = join(true);
  const auto registration = ada->directory.announce(make("a"), kShort, soon());
  auto seen = bob->directory.lookup("a", soon());
  for (const auto limit = soon(); seen.ok() && !seen->instances.empty() && !limit.passed();)
    seen = bob->directory.watch(named("a"), seen->at, Deadline::never());
  ASSERT_TRUE(seen.ok()) << seen.error().to_string();
  EXPECT_TRUE(seen->instances.empty());
}

TEST_P(DirectoryService, LimitsAreTypedErrors) {
  ServerLimits limits;
  limits.watches_per_caller = 2;
  limits.registry.entries_per_caller = 1;
  start(limits);
  auto ada = join();
  const auto one = ada->directory.announce(make("a"), kLong, soon());
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(ada->directory.announce(make("b"), kLong, soon()).code(), Code::kNoMemory);
  const auto peer = ada->runtime->connect(server_->runtime->url(), soon());
  Client client(*ada->runtime, *peer);
  const auto seen = client.LIST(named("a"))->at;
  auto first = client.WATCH_async(named("a"), seen, 60'000), second = client.WATCH_async(named("b"), seen, 60'000);
  EXPECT_EQ(client.WATCH(named("c"), seen, 60'000).code(), Code::kBusy);
  EXPECT_FALSE(first.test());
}

TEST_P(DirectoryService, AWatchThatIsDropped_EndsWhereItWaits) {
  ServerLimits limits;
  limits.watches_per_caller = 1;
  start(limits);
  auto ada = join();
  const auto peer = ada->runtime->connect(server_->runtime->url(), soon());
  Client client(*ada->runtime, *peer);
  const auto seen = client.LIST(named("a"))->at;
  {
    auto dropped = client.WATCH_async(named("a"), seen, 60'000);
    ASSERT_EQ(client.WATCH(named("a"), seen, 60'000).code(), Code::kBusy);
  }
  EXPECT_TRUE(eventually([&] { return client.WATCH(named("a"), seen, 1).ok(); }));
}

TEST_P(DirectoryService, BadInput_IsRefusedAndChangesNothing) {
  auto ada = join();
  EXPECT_EQ(ada->directory.announce(make("a b"), kLong, soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(ada->directory.announce(make("a"), milliseconds(0), soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(ada->directory.lookup("", soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(ada->directory.list("a b", soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(ada->directory.watch(named("?"), {}, soon()).code(), Code::kInvalidArgument);
  const auto peer = ada->runtime->connect(server_->runtime->url(), soon());
  Client raw(*ada->runtime, *peer);  // what the library checks, the directory checks, too
  EXPECT_EQ(raw.ANNOUNCE({{}, 1000, make("a b")}).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.LIST(named("a b")).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.WATCH(named("a b"), {}, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.ANNOUNCE({{}, 1000, make(std::string(200, 'a'))}).code(), Code::kInvalidArgument);
  for (nssi::OpCode op = DIRECTORY::ONE::ANNOUNCE; op <= DIRECTORY::ONE::WATCH; ++op) {
    auto call = ada->runtime->call(raw.service(), op, nssi::Bytes(5));
    EXPECT_EQ(call.wait().code(), Code::kBadMessage);
  }
  EXPECT_TRUE(ada->directory.list("", soon())->instances.empty());
}

TEST_P(DirectoryService, ABadAttribute_IsNamedWithItsLengthAndTheBound) {
  auto ada = join();
  const auto refusal_of = [&](const std::vector<std::pair<std::string, std::string>> &attributes) {
    auto what = make("a");
    for (const auto &[name, value] : attributes) what.attributes.push_back({name, value});
    const auto registration = ada->directory.announce(what, kLong, soon());
    EXPECT_EQ(registration.code(), Code::kInvalidArgument);
    return registration.ok() ? std::string() : registration.error().message;
  };
  const std::string long_name(65, 'n');
  EXPECT_EQ(refusal_of({{"rank", "0"}, {long_name, "x"}}),
            "the attribute's name '" + long_name + "' has 65 characters; it must have 1 to 64");
  EXPECT_EQ(refusal_of({{"rank", "0"}, {"", "x"}}), "the name of attribute 2 has 0 characters; it must have 1 to 64");
  EXPECT_EQ(refusal_of({{"a b", "x"}}),
            "the name of attribute 1 may have letters, digits, '.', '_', '-' and '/', and no others");
  EXPECT_EQ(refusal_of({{"rank", std::string(1025, 'v')}}),
            "the value of the attribute 'rank' has 1025 characters; it may have 1024 at most");
  EXPECT_EQ(refusal_of({{"rank", "\n"}}), "the value of the attribute 'rank' is not printable ASCII");
  EXPECT_EQ(refusal_of({{"rank", "0"}, {"rank", "1"}}), "the attribute 'rank' is there twice");
  std::vector<std::pair<std::string, std::string>> many;
  for (int i = 0; i < 17; ++i) many.emplace_back("a" + std::to_string(i), "");
  EXPECT_EQ(refusal_of(many), "there are 17 attributes; there may be 16 at most");
  many.pop_back();
  many.back() = {std::string(64, 'n'), std::string(1024, 'v')};
  auto what = make("a");
  for (const auto &[name, value] : many) what.attributes.push_back({name, value});
  EXPECT_TRUE(ada->directory.announce(what, kLong, soon()).ok()) << "at the bounds";
}

TEST_P(DirectoryService, ANameThatIsTooLong_IsToldWithItsLength) {
  auto ada = join();
  const auto registration = ada->directory.announce(make(std::string(129, 'a')), kLong, soon());
  ASSERT_EQ(registration.code(), Code::kInvalidArgument);
  EXPECT_EQ(registration.error().message, "a service's name has 129 characters; it must have 1 to 128");
}

TEST_P(DirectoryService, ThatIsNotThere_IsAnErrorAtTheDeadline) {
  const auto url = server_->runtime->url();
  auto ada = join();
  ASSERT_EQ(ada->count("a"), 0u);
  server_.reset();
  const auto deadline = Deadline::in(milliseconds(100));
  const auto got = ada->directory.lookup("a", deadline);
  EXPECT_TRUE(deadline.passed());
  EXPECT_TRUE(got.code() == Code::kPeerLost || got.code() == Code::kTimedOut) << got.error().to_string();
}

/// A directory that grants no time.
class Miser final : public DIRECTORY::ONE::Server {
 public:
  using DIRECTORY::ONE::Server::add_to;
  std::atomic<int> announced{0};

 private:
  nssi::Outcome<grant> ANNOUNCE(nssi::Request &, const announcement &) override { return ++announced, grant{0, true}; }
  nssi::Outcome<bool> WITHDRAW(nssi::Request &, const secret &) override { return true; }
  nssi::Outcome<listing> LIST(nssi::Request &, const query &) override { return listing(); }
  nssi::Outcome<listing> WATCH(nssi::Request &, const query &, const mark &, std::uint32_t) override {
    return listing();
  }
};

TEST_P(DirectoryService, LeaseOfNoTime_IsNotRenewedWithoutAPause) {
  Miser miser;
  const nssi::testing::ServiceThread service(
      runtime_options(GetParam(), true), [&](nssi::Runtime &runtime) { EXPECT_TRUE(miser.add_to(runtime, 0).ok()); });
  Participant ada(GetParam(), service.runtime->url(), true);
  const auto begin = Clock::now();
  const auto registration = ada.directory.announce(make("a"), kShort, soon());
  ASSERT_TRUE(registration.ok()) << registration.error().to_string();
  ASSERT_TRUE(eventually([&] { return miser.announced > 10; }));
  EXPECT_GE(Clock::now() - begin, milliseconds(200));
}

TEST_P(DirectoryService, RuntimesEndWhileTheirFibersRenewAndWatch) {
  std::atomic<int> watching{0}, ended{0};
  {
    auto ada = join(true);
    const auto registration = ada->directory.announce(make("a"), kShort, soon());
    ASSERT_TRUE(registration.ok());
    for (const auto &what : {named("b"), query{true, std::string("b")}})
      ada->runtime->spawn([&, what] {
        Directory directory(*ada->runtime, server_->runtime->url());
        const auto seen = directory.watch(what, {}, soon());
        ++watching;
        const auto got = directory.watch(what, seen->at, Deadline::never());
        ended += got.code() == Code::kCancelled ? 1 : 100;
      });
    ASSERT_TRUE(eventually([&] { return watching == 2; }));
  }
  EXPECT_EQ(ended, 2);
}

INSTANTIATE_TEST_SUITE_P(Over, DirectoryService, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

}  // namespace
}  // namespace directory::testing
