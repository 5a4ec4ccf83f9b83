// SPDX-License-Identifier: BSD-3-Clause
// What is particular to stubs in C++: futures, several calls at once, exceptions of handlers, names.
#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <optional>
#include <stub_names_rpc.hpp>

#include "fields_service.hpp"

namespace nssi::testing {
namespace {

using std::chrono::seconds;
namespace ONE = fields::FIELDS::ONE;
namespace TWO = fields::FIELDS::TWO;
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
  Outcome<void> note_arrival_(Request &) override { return {}; }
  void note_arrival(Request &) override {}
};

class StubsInCpp : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    server_ = open_runtime(options_for(GetParam(), true));
    ASSERT_TRUE(fields_.emplace(*server_).add_to(*server_).ok());
    ASSERT_TRUE(second_.add_to(*server_, 5).ok());
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
  ONE::Client client() { return {*runtime_, peer_}; }

  std::optional<fields_peer::Fields> fields_;
  fields_peer::Second second_;
  Named named_;
  std::unique_ptr<Runtime> server_, runtime_;
  std::thread thread_;
  PeerId peer_;
};

TEST_P(StubsInCpp, SeveralCalls_AreWaitedForInTurnOrTogether) {
  auto client = this->client();
  std::vector<Future<std::int64_t>> sums;
  for (std::int32_t i = 0; i < 3; ++i) sums.push_back(client.ADD_async(i, static_cast<std::uint64_t>(i)));
  EXPECT_TRUE(wait_all(sums).ok());
  auto place = wait_any(sums);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(*place, 0u);
  EXPECT_EQ(*sums[2].wait(), 4);
  std::vector<Future<std::int32_t>> refused;
  refused.push_back(client.REST_async(0));
  refused.push_back(client.REFUSE_async(28));
  EXPECT_EQ(wait_all(refused).code(), Code::kIo);
  auto greeting = client.GREET_async("Ada", std::string());
  const std::vector<Call *> mixed{&greeting.call(), &sums[0].call()};
  EXPECT_EQ(*wait_any(mixed), greeting.is_over() ? 0u : 1u);
  EXPECT_TRUE(wait_all(mixed).ok());
}

TEST_P(StubsInCpp, ACallThatCouldNotBeMade_IsOver) {
  std::vector<Future<fields::titles>> picked;
  picked.push_back(client().PICK_async({}, std::vector{fields::axis(7)}));
  EXPECT_TRUE(wait_any(picked).ok());
  EXPECT_EQ(wait_all(picked).code(), Code::kInvalidArgument);
  picked[0].cancel();
  EXPECT_EQ(picked[0].wait().code(), Code::kInvalidArgument);
  EXPECT_EQ(wait_any(std::vector<Future<void>>()).code(), Code::kInvalidArgument);
}

TEST_P(StubsInCpp, ACallThatIsCancelled_TellsSo) {
  auto rest = client().REST_async(60'000);
  rest.cancel();
  EXPECT_EQ(rest.wait().code(), Code::kCancelled);
}

TEST_P(StubsInCpp, Multicast_AsksAllAndKeepsTheirOrder) {
  std::vector<TWO::Client> clients;
  for (const std::uint32_t provider : {5, 7, 5}) clients.emplace_back(*runtime_, peer_, provider);
  auto sums = multicast(clients, &TWO::Client::ADD_async, 1, 2, 3);
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(wait_all(sums).code(), Code::kNotFound);
  EXPECT_EQ(*sums[0].wait(), 6);
  EXPECT_EQ(sums[1].wait().code(), Code::kNotFound) << "there is no provider 7";
  EXPECT_EQ(*sums[2].wait(), 6);
  CallOptions one_way;
  one_way.one_way = true;
  EXPECT_TRUE(wait_all(multicast(std::span(clients).first(1), &TWO::Client::ADD_async, 1, 2, 3, one_way)).ok());
}

TEST_P(StubsInCpp, TheResultOfAOneWayCall_IsAsItsTypeBegins) {
  CallOptions one_way;
  one_way.one_way = true;
  const auto sum = client().ADD(40, 2, one_way);
  ASSERT_TRUE(sum.ok()) << sum.error().message;
  EXPECT_EQ(*sum, 0);
  EXPECT_TRUE(client().GREET("Ada", std::string(), one_way)->empty());
  EXPECT_TRUE(client().NOTHING(one_way).ok());
}

TEST_P(StubsInCpp, AHandlersException_IsItsCallersError) {
  EXPECT_EQ(client().PICK({}, std::vector{fields::axis::ALONG_X}).code(), Code::kInternal);
}

TEST_P(StubsInCpp, OperationsMayBeCalledAsTheStubsCallThings) {
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

INSTANTIATE_TEST_SUITE_P(Over, StubsInCpp, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

}  // namespace
}  // namespace nssi::testing
