// SPDX-License-Identifier: BSD-3-Clause
// What `nessie idl` makes of stub_test.x: a client in front of a server, over every transport of this machine.
#include <gtest/gtest.h>

#include <nssi/stub/stub_test_atlas.hpp>
#include <nssi/testing/testing.hpp>

#include <numeric>
#include <stub_names_rpc.hpp>

namespace nssi::testing {
namespace {

using std::chrono::seconds;
namespace FIRST = stub_test::ATLAS::FIRST;
namespace SECOND = stub_test::ATLAS::SECOND;

class Second final : public SECOND::Server {
 public:
  explicit Second(std::int32_t offset) : offset_(offset) {}
  Outcome<std::int32_t> ADD(Request &, std::int32_t a, std::int32_t b, std::int32_t c) override {
    return a + b + c + offset_;
  }

 private:
  std::int32_t offset_;
};

namespace NAMED = stub_names::NAMES::Client;

/// Each operation adds its number.
class Named final : public NAMED::Server {
 public:
  Outcome<std::int32_t> A(Request &, std::int32_t n) override { return n + 1; }
  Outcome<std::int32_t> A_async_(Request &, std::int32_t n) override { return n + 2; }
  Outcome<std::int32_t> request(Request &, std::int32_t n) override { return n + 3; }
  Outcome<std::int32_t> argument1(Request &, std::int32_t n) override { return n + 4; }
  Outcome<std::int32_t> provider(Request &, std::int32_t n) override { return n + 5; }
  Outcome<std::int32_t> runtime(Request &, std::int32_t n) override { return n + 6; }
  Outcome<std::int32_t> status(Request &, std::int32_t n) override { return n + 7; }
  Outcome<std::int32_t> start(Request &, std::int32_t n) override { return n + 8; }
  Outcome<void> start_bulk(Request &) override { return {}; }
  Outcome<std::int32_t> Server_(Request &, std::int32_t n) override { return n + 10; }
};

class NssiStubs : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    server_ = open_runtime(options_for(GetParam(), true));
    ASSERT_TRUE(atlas_.add_to(*server_).ok());
    ASSERT_TRUE(second_.add_to(*server_).ok());
    ASSERT_TRUE(other_.add_to(*server_, 5).ok());
    ASSERT_TRUE(named_.add_to(*server_).ok());
    thread_ = std::thread([this] { server_->run(); });
    runtime_ = open_runtime(options_for(GetParam(), false));
    auto peer = runtime_->connect(server_->url(), Deadline::in(seconds(20)));
    ASSERT_TRUE(peer.ok()) << peer.error().to_string();
    peer_ = *peer;
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }
  FIRST::Client client() { return {*runtime_, peer_}; }

  Atlas atlas_;
  Second second_{0}, other_{1000};
  Named named_;
  std::unique_ptr<Runtime> server_, runtime_;
  std::thread thread_;
  PeerId peer_;
};

TEST_P(NssiStubs, CarryArgumentsAndResultsOfEveryKind) {
  auto atlas = client();
  EXPECT_TRUE(atlas.NOTHING().ok());
  EXPECT_EQ(*atlas.ADD(40, 2), 42);
  EXPECT_EQ(*atlas.SHORT(-7), -7);
  EXPECT_EQ(*atlas.GREET("Ada"), "hello Ada");
  EXPECT_EQ(*atlas.MIRROR({3, 4}), (stub_test::point{-3, -4}));
  EXPECT_EQ(atlas.WALK({1, 1}, 3)->size(), 3u);
  EXPECT_EQ(*atlas.FIND(stub_test::color::RED)->where(), (stub_test::point{1, 2}));
  EXPECT_EQ(atlas.FIND(stub_test::color::GREEN)->where(), nullptr);
  for (std::size_t size : {0, 1, 511, 512, 4096, 100'000, 1 << 20}) {
    const auto bytes = pattern(size);
    EXPECT_EQ(*atlas.ECHO(bytes), bytes);
  }
}

TEST_P(NssiStubs, MoveBulkDataAsTheServerDirects) {
  auto atlas = client();
  auto buffer = runtime_->allocate(100'000, nnti::Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  ASSERT_TRUE(atlas.FILL(3, *buffer).ok());
  EXPECT_EQ(*atlas.SUM(*buffer), 300'000u);
  ASSERT_TRUE(atlas.NEGATE(*buffer).ok());
  EXPECT_EQ(buffer->bytes()[99'999], std::byte{0xfc});
}

TEST_P(NssiStubs, SeveralCallsAtOnce_EachHasItsResult) {
  auto atlas = client();
  std::vector<Future<std::int32_t>> sums;
  for (std::int32_t i = 0; i < 100; ++i) sums.push_back(atlas.ADD_async(i, i));
  for (std::int32_t i = 0; i < 100; ++i) EXPECT_EQ(*sums[static_cast<std::size_t>(i)].wait(), 2 * i);
}

TEST_P(NssiStubs, SeveralCalls_AreWaitedForInTurnOrTogether) {
  auto atlas = client();
  std::vector<Future<std::int32_t>> sums;
  for (std::int32_t i = 0; i < 3; ++i) sums.push_back(atlas.ADD_async(i, i));
  EXPECT_TRUE(wait_all(sums).ok());
  auto place = wait_any(sums);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(*place, 0u);
  EXPECT_EQ(*sums[2].wait(), 4);
  sums.push_back(atlas.REFUSE_async(28));
  EXPECT_EQ(wait_all(sums).code(), Code::kIo);
  auto greeting = atlas.GREET_async("Ada");
  const std::vector<Call *> mixed{&greeting.call(), &sums[0].call()};
  EXPECT_EQ(*wait_any(mixed), greeting.is_over() ? 0u : 1u);
  EXPECT_TRUE(wait_all(mixed).ok());
}

TEST_P(NssiStubs, ACallThatCouldNotBeMade_IsOver) {
  std::vector<Future<stub_test::found>> found;
  found.push_back(client().FIND_async(static_cast<stub_test::color>(7)));
  EXPECT_TRUE(wait_any(found).ok());
  EXPECT_EQ(wait_all(found).code(), Code::kInvalidArgument);
  found[0].cancel();
  EXPECT_EQ(found[0].wait().code(), Code::kInvalidArgument);
  EXPECT_EQ(wait_any(std::vector<Future<void>>()).code(), Code::kInvalidArgument);
}

TEST_P(NssiStubs, ACallThatIsCancelled_TellsSo) {
  server_->stop();
  thread_.join();  // it answers nothing
  auto sum = client().ADD_async(1, 2);
  sum.cancel();
  EXPECT_EQ(sum.wait().code(), Code::kCancelled);
}

TEST_P(NssiStubs, Multicast_AsksAllAndKeepsTheirOrder) {
  std::vector<SECOND::Client> clients;
  for (const std::uint32_t provider : {5, 0, 7}) clients.emplace_back(*runtime_, peer_, provider);
  auto sums = multicast(clients, &SECOND::Client::ADD_async, 1, 2, 3);
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(wait_all(sums).code(), Code::kNotFound) << "there is no provider 7";
  EXPECT_EQ(*sums[0].wait(), 1006);
  EXPECT_EQ(*sums[1].wait(), 6);
  CallOptions one_way;
  one_way.one_way = true;
  EXPECT_TRUE(wait_all(multicast(std::span(clients).first(2), &SECOND::Client::ADD_async, 1, 2, 3, one_way)).ok());
}

TEST_P(NssiStubs, ErrorsOfHandlersArriveAsTheyWere) {
  auto atlas = client();
  const auto refused = atlas.REFUSE(28);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kIo);
  EXPECT_EQ(refused.error().cause, 28);
  EXPECT_EQ(atlas.BURN().code(), Code::kInternal);
  EXPECT_EQ(atlas.WALK({0, 0}, 9).code(), Code::kInternal) << "a result beyond its bound";
}

TEST_P(NssiStubs, ArgumentsThatBreakTheInterface_AreNotSent) {
  auto atlas = client();
  EXPECT_EQ(atlas.FIND(static_cast<stub_test::color>(7)).code(), Code::kInvalidArgument);
  auto memory = pattern(10);
  auto buffer = runtime_->register_memory(memory, nnti::Rights::kRemoteRead);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(atlas.FILL(1, *buffer).code(), Code::kInvalidArgument);
  EXPECT_EQ(atlas.SUM(nnti::RegisteredBuffer()).code(), Code::kInvalidArgument);
}

TEST_P(NssiStubs, ArgumentsOfAnotherType_AreABadMessage) {
  auto call = runtime_->call(client().service(), FIRST::ADD, Bytes(5));
  EXPECT_EQ(call.wait().code(), Code::kBadMessage);
  EXPECT_EQ(*client().ADD(1, 1), 2);
}

TEST_P(NssiStubs, VersionsAndProvidersAreToldApart) {
  EXPECT_EQ(*(SECOND::Client(*runtime_, peer_).ADD(1, 2, 3)), 6);
  EXPECT_EQ(*(SECOND::Client(*runtime_, peer_, 5).ADD(1, 2, 3)), 1006);
  EXPECT_EQ(FIRST::Client(*runtime_, peer_, 5).ADD(1, 2).code(), Code::kNotFound);
}

TEST_P(NssiStubs, OperationsMayBeCalledAsTheStubsCallThings) {
  NAMED::Client named(*runtime_, peer_);
  EXPECT_EQ(*named.A_async(0).wait(), 1);
  EXPECT_EQ(*named.A_async_(0), 2);
  EXPECT_EQ(*named.request(0), 3);
  EXPECT_EQ(*named.argument1(0), 4);
  EXPECT_EQ(*named.provider(0), 5);
  EXPECT_EQ(*named.runtime(0), 6);
  EXPECT_EQ(*named.status(0), 7);
  EXPECT_EQ(*named.start(0), 8);
  EXPECT_EQ(*named.Server_(0), 10);
}

INSTANTIATE_TEST_SUITE_P(Over, NssiStubs, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

}  // namespace
}  // namespace nssi::testing
