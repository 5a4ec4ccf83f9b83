// SPDX-License-Identifier: BSD-3-Clause
// A service that has no room: who waits, in which order, and what those who do not come cost the others.
#include <gtest/gtest.h>

#include <nssi/statistics.hpp>
#include <nssi/testing/testing.hpp>
#include <nssi/wire/wire.hpp>

#include <map>
#include <utility>

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

RuntimeOptions limited(const Limits &limits, const std::string &transport) {
  auto options = options_for(transport, true);
  options.limits = limits;
  return options;
}

std::int32_t number_in(const Call &call) { return *xdr::decode<std::int32_t>(call.view()); }

/// A runtime that only calls.
struct Caller {
  explicit Caller(const std::string &url, const std::string &transport = "inproc")
      : runtime(open_runtime(options_for(transport, false))), peer(*runtime->connect(url, Deadline::in(seconds(20)))) {}
  Call call(OpCode op, const CallOptions &options = {}, const Bytes &args = {}) {
    return runtime->call(at(peer), op, args, options);
  }
  std::unique_ptr<Runtime> runtime;
  PeerId peer;
};

class NssiLimits : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
  }
  void start(const Limits &limits) { server_ = std::make_unique<ServiceThread>(limited(limits, GetParam())); }
  Caller caller() { return Caller(server_->runtime->url(), GetParam()); }
  Service &service() { return *server_->service; }
  /// A request that takes the service's room until release_blocked().
  Call block(Caller &caller) {
    auto call = caller.call(kBlock);
    EXPECT_TRUE(eventually([&] {
      (void)call.test();
      return service().blocked > 0;
    }));
    return call;
  }
  std::unique_ptr<ServiceThread> server_;
};

/// Nothing is known yet of how large results are: requests are let in.
TEST_P(NssiLimits, ResultsForWhichThereIsNoRoom_AreMadeWhenTheirCallerHasFetchedOthers) {
  constexpr std::uint64_t kResult = 1 << 20, kLimit = 4 * kResult;
  constexpr int kCalls = 40;
  start({.bytes_of_caller = kLimit});
  auto slow = caller(), other = caller();
  std::vector<Call> calls;
  for (int i = 0; i < kCalls; ++i) calls.push_back(slow.call(kMake, {}, xdr::encode(Pattern{kResult})));
  const auto results = [&] {
    const auto operations = server_->runtime->statistics().operations;
    return std::ranges::find(operations, kMake, &OperationStatistics::op)->result_bytes / kResult;
  };
  ASSERT_TRUE(eventually([&] { return results() == kLimit / kResult; }));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(other.call(kNoop).wait().ok());  // by now all handlers have begun
  EXPECT_EQ(results(), kLimit / kResult);
  for (auto &call : calls) {
    const auto status = call.wait();
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    ASSERT_EQ(call.view().size(), kResult);
  }
}

TEST_P(NssiLimits, ResultsForWhichThereIsNoRoomBeforeTheirDeadline_AreNotMade) {
  constexpr OpCode kMakeAtGate = 100, kOpen = 101;
  constexpr int kCalls = 20, kRoom = 4;
  std::unique_ptr<Event> gate;
  std::atomic<int> waiting{0}, made{0}, late{0}, told{0};
  auto options = limited({.bytes_of_caller = kRoom << 20}, GetParam());
  ServiceThread server(std::move(options), [&](Runtime &runtime) {
    gate = std::make_unique<Event>(runtime);
    (void)runtime.add_operation({kInterface, 0, kMakeAtGate, "make_at_gate", HandlerKind::kFiber, [&](Request &r) {
                                   ++waiting;
                                   (void)gate->wait();
                                   const auto status = r.reply(pattern(1 << 20));
                                   made += status.ok();
                                   late += status.code() == Code::kTimedOut;
                                   told += r.deadline().is_never();
                                 }});
    (void)runtime.add_operation({kInterface, 0, kOpen, "open", HandlerKind::kShort, [&](Request &r) {
                                   gate->set();
                                   (void)r.reply();
                                 }});
  });
  Caller slow(server.runtime->url(), GetParam()), other(server.runtime->url(), GetParam());
  CallOptions soon;
  soon.deadline = Deadline::in(seconds(2));
  std::vector<Call> calls;
  for (int i = 0; i < kCalls; ++i) calls.push_back(slow.call(kMakeAtGate, soon));
  ASSERT_TRUE(eventually([&] { return (void)calls[0].test(), waiting == kCalls; }));
  EXPECT_TRUE(other.call(kOpen).wait().ok());
  ASSERT_TRUE(eventually([&] { return made + late == kCalls; }));
  EXPECT_EQ(made, kRoom);
  CallOptions one_way{.deadline = Deadline::never(), .one_way = true};
  for (int i = 0; i < 2 * kRoom; ++i) EXPECT_TRUE(other.call(kMakeAtGate, one_way).wait().ok());
  EXPECT_TRUE(eventually([&] { return told == 2 * kRoom; })) << "nobody gets these results: they need no room";
}

TEST_P(NssiLimits, BeyondTheLimit_CallsWaitAtTheirCallerAndBeginInTheirOrder) {
  start({.requests = 1});
  auto client = caller();
  auto first = block(client);
  std::vector<Call> calls;
  for (int i = 0; i < 50; ++i) calls.push_back(client.call(kCount));
  EXPECT_EQ(calls[0].wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  EXPECT_EQ(service().counted, 0);
  service().release_blocked();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(calls[i].wait().ok());
    EXPECT_EQ(number_in(calls[i]), i + 1);
  }
  EXPECT_TRUE(first.wait().ok());
}

TEST_P(NssiLimits, WhoDoesNotWaitHearsWhenToComeBack) {
  start({.requests = 1});
  auto client = caller();
  auto first = block(client);
  CallOptions options;
  options.when_busy = CallOptions::WhenBusy::kFail;
  auto status = client.call(kCount, options).wait();
  ASSERT_EQ(status.code(), Code::kBusy);
  EXPECT_GT(status.error().retry_after.count(), 0);
  service().release_blocked();
  EXPECT_TRUE(first.wait().ok());
  EXPECT_TRUE(eventually([&] { return client.call(kCount, options).wait().ok(); }));
  EXPECT_EQ(service().counted, 1);
}

TEST_P(NssiLimits, CallersWhoWaitAreServedInTurn) {
  start({.requests = 1});
  auto greedy = caller(), modest = caller();
  auto first = block(greedy);
  std::vector<Call> many;
  for (int i = 0; i < 100; ++i) many.push_back(greedy.call(kCount));
  EXPECT_EQ(many[0].wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  auto one = modest.call(kCount);
  EXPECT_EQ(one.wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  service().release_blocked();
  while (!one.test()) (void)many.back().test();
  ASSERT_TRUE(one.wait().ok());
  EXPECT_LE(number_in(one), 4) << "a hundred requests of one caller were served before one of another";
  for (auto &call : many) EXPECT_TRUE(call.wait().ok());
}

TEST_P(NssiLimits, OneCallersLimitIsNotTheOthers) {
  start({.requests_of_caller = 1});
  auto greedy = caller(), other = caller();
  auto first = block(greedy);
  auto behind = greedy.call(kCount);
  EXPECT_EQ(behind.wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  EXPECT_TRUE(other.call(kNoop).wait().ok());
  service().release_blocked();
  EXPECT_TRUE(behind.wait().ok());
}

TEST_P(NssiLimits, AHeldCallThatIsDroppedIsNotCarriedOut) {
  start({.requests = 1});
  auto client = caller();
  auto first = block(client);
  {
    auto dropped = client.call(kCount);
    EXPECT_EQ(dropped.wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  }
  auto kept = client.call(kCount);
  service().release_blocked();
  ASSERT_TRUE(kept.wait().ok());
  EXPECT_EQ(number_in(kept), 1);
}

TEST_P(NssiLimits, AHeldCallThatRunsOutOfTimeSaysThatItWasNotCarriedOut) {
  start({.requests = 1});
  auto client = caller();
  auto first = block(client);
  CallOptions options;
  options.deadline = Deadline::in(milliseconds(50));
  auto status = client.call(kCount, options).wait();
  ASSERT_EQ(status.code(), Code::kTimedOut);
  EXPECT_NE(status.error().message.find("not carried out"), std::string::npos) << status.error().message;
  service().release_blocked();
  EXPECT_TRUE(client.call(kNoop).wait().ok());
  EXPECT_EQ(service().counted, 0);
}

TEST_P(NssiLimits, AHeldCallForWhichNobodyWaits_LeavesItsPlaceAtItsDeadline) {
  start({.requests = 1});
  auto client = caller();
  auto first = block(client);
  CallOptions options;
  options.deadline = Deadline::in(milliseconds(50));
  auto forgotten = client.call(kCount, options);
  options.one_way = true;
  (void)client.call(kCount, options);
  auto behind = client.call(kCount);
  EXPECT_EQ(behind.wait(Deadline::in(milliseconds(100))).code(), Code::kTimedOut);
  service().release_blocked();
  EXPECT_TRUE(behind.wait().ok());
  EXPECT_EQ(forgotten.wait().code(), Code::kTimedOut);
  EXPECT_EQ(service().counted, 1);
}

TEST_P(NssiLimits, LimitsOfACallerThatAreRaised_LetItsHeldCallsIn) {
  start({.requests_of_caller = 1});
  auto client = caller();
  auto first = block(client);
  auto held = client.call(kCount);
  EXPECT_EQ(held.wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  ASSERT_TRUE(server_->runtime->set_limits(kInterface, 0, {}).ok());
  EXPECT_TRUE(held.wait().ok());
  service().release_blocked();
}

TEST_P(NssiLimits, ArgumentsThatNoServiceTakes_HoldUpNobody) {
  auto options = limited({.bytes = 1 << 20}, GetParam());
  options.endpoint.config.set("nssi.max_long", "1M");
  server_ = std::make_unique<ServiceThread>(std::move(options));
  auto client = caller();
  const Bytes too_large(2 << 20), large(900 << 10);
  auto first = client.call(kEcho, {}, large);
  EXPECT_EQ(client.call(kEcho, {}, too_large).wait().code(), Code::kNoMemory);
  EXPECT_TRUE(first.wait().ok());
  EXPECT_TRUE(client.call(kEcho, {}, large).wait().ok());
}

TEST_P(NssiLimits, MemoryIsLimitedForLongArgumentsToo) {
  start({.bytes = 1 << 20});
  auto client = caller();
  const Bytes large(700 << 10, std::byte{1});
  std::vector<Call> calls;
  for (int i = 0; i < 8; ++i) calls.push_back(client.call(kEcho, {}, large));
  for (auto &call : calls) {
    ASSERT_TRUE(call.wait().ok());
    EXPECT_TRUE(std::ranges::equal(call.view(), large));
  }
}

TEST_P(NssiLimits, WhatAloneIsLargerThanTheLimitIsLetIn) {
  start({.bytes = 1 << 10});
  auto client = caller();
  const Bytes large(1 << 20, std::byte{2});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client.call(kEcho, {}, large).wait().ok());
}

TEST_P(NssiLimits, RaisedWhileCallsWait_TheyComeIn) {
  start({.requests = 1});
  auto client = caller();
  auto first = block(client);
  auto held = client.call(kCount);
  EXPECT_EQ(held.wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  server_->runtime->set_limits({});
  EXPECT_TRUE(held.wait().ok());
  service().release_blocked();
  EXPECT_EQ(server_->runtime->set_limits({1, 2}, 3, {}).code(), Code::kNotFound);
}

TEST_P(NssiLimits, ACallerThatDiesWhileItWaits_LeavesItsPlace) {
  start({.requests = 1});
  auto client = caller();
  auto first = block(client);
  {
    auto mortal = caller();
    auto call = mortal.call(kCount);
    EXPECT_EQ(call.wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  }
  auto behind = client.call(kCount);
  service().release_blocked();
  EXPECT_TRUE(behind.wait().ok());
}

TEST_P(NssiLimits, AOneWayCallIsCarriedOutThoughNobodyWaitsForIt) {
  start({});
  auto client = caller();
  CallOptions options;
  options.one_way = true;
  for (int i = 0; i < 10; ++i) (void)client.call(kCount, options);
  auto acknowledged = client.call(kBlock, options);
  EXPECT_TRUE(acknowledged.wait().ok()) << "its handler has begun, and goes on";
  EXPECT_TRUE(eventually([&] { return service().blocked == 1; }));
  service().release_blocked();
  EXPECT_TRUE(client.call(kNoop).wait().ok());
  EXPECT_EQ(service().counted, 10);
  EXPECT_EQ(client.call(999, options).wait().code(), Code::kNotFound);
}

TEST_P(NssiLimits, LongArgumentsOfOneWayCalls_AreTheirHandlersOwn) {
  constexpr OpCode kKeep = 100, kOpen = 101;
  std::unique_ptr<Event> gate;
  std::vector<Bytes> kept;
  std::atomic<std::size_t> begun{0}, ended{0};
  ServiceThread server(limited({}, GetParam()), [&](Runtime &runtime) {
    gate = std::make_unique<Event>(runtime);
    Operation keep{kInterface, 0, kKeep, "keep", HandlerKind::kFiber, [&](Request &r) {
                     ++begun;
                     (void)gate->wait();
                     kept.emplace_back(r.args().begin(), r.args().end());
                     ++ended;
                   }};
    keep.reads_args_once = true;
    (void)runtime.add_operation(std::move(keep));
    (void)runtime.add_operation({kInterface, 0, kOpen, "open", HandlerKind::kShort, [&](Request &r) {
                                   gate->set();
                                   (void)r.reply();
                                 }});
  });
  Caller client(server.runtime->url(), GetParam());
  CallOptions options;
  options.one_way = true;
  std::vector<Bytes> sent;
  for (int i = 1; i <= 3; ++i) {
    sent.emplace_back(1 << 20, static_cast<std::byte>(i));
    EXPECT_TRUE(client.call(kKeep, options, sent.back()).wait().ok());
  }
  EXPECT_TRUE(eventually([&] { return begun == sent.size(); }));
  EXPECT_TRUE(client.call(kOpen).wait().ok());
  ASSERT_TRUE(eventually([&] { return ended == sent.size(); }));
  EXPECT_TRUE(kept == sent) << "their caller's memory was used for the next call meanwhile";
}

TEST_P(NssiLimits, AOneWayCallMayNotLendABuffer) {
  start({});
  auto client = caller();
  auto buffer = client.runtime->allocate(64, nnti::Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  CallOptions options;
  options.one_way = true;
  options.data = &*buffer;
  EXPECT_EQ(client.call(kPull, options).wait().code(), Code::kInvalidArgument);
}

TEST_P(NssiLimits, Stopped_WhatWasAcceptedIsFinishedAndWhatComesIsRefused) {
  start({.requests = 2});
  auto client = caller();
  auto accepted = block(client);
  auto also_accepted = client.call(kBlock);
  EXPECT_TRUE(eventually([&] { return (void)also_accepted.test(), service().blocked == 2; }));
  auto held = client.call(kCount);
  EXPECT_EQ(held.wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  server_->runtime->stop_when_done(Deadline::in(seconds(20)));
  EXPECT_EQ(held.wait().code(), Code::kUnavailable);
  EXPECT_EQ(client.call(kNoop).wait().code(), Code::kUnavailable);
  service().release_blocked();
  EXPECT_TRUE(accepted.wait().ok());
  EXPECT_TRUE(also_accepted.wait().ok());
  server_->stop();
  EXPECT_EQ(service().counted, 0);
}

TEST_P(NssiLimits, StoppedAndRunAgain_ItHasItsLimits) {
  start({.requests = 1});
  auto client = caller();
  ASSERT_TRUE(client.call(kNoop).wait().ok());
  server_->runtime->stop_when_done(Deadline::in(seconds(20)));
  server_->join();
  std::thread again([&] { server_->runtime->run(); });
  auto accepted = block(client);
  CallOptions options;
  options.when_busy = CallOptions::WhenBusy::kFail;
  EXPECT_EQ(client.call(kNoop, options).wait().code(), Code::kBusy);
  service().release_blocked();
  EXPECT_TRUE(accepted.wait().ok());
  server_->runtime->stop();
  again.join();
}

TEST_P(NssiLimits, StoppedAtADeadline_ItDoesNotWaitForAHandlerThatNeverEnds) {
  start({});
  auto client = caller();
  auto never = block(client);
  server_->runtime->stop_when_done(Deadline::in(milliseconds(50)));
  server_->join();
  server_.reset();
  EXPECT_NE(never.wait().code(), Code::kOk);
}

INSTANTIATE_TEST_SUITE_P(Transports, NssiLimits, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

/// A connection to the service, without a client's inside: it does not come when it is invited.
class Lazy final : public nnti::EventSink {
 public:
  explicit Lazy(const std::string &url) {
    endpoint_ = *nnti::Endpoint::open(options_for("inproc", false).endpoint, *this);
    peer_ = *endpoint_->connect(url, Deadline::in(seconds(20)));
    wire::Hello hello;
    hello.session[0] = std::byte{7};
    (void)endpoint_->send(peer_, xdr::encode(hello));
  }
  void request(std::uint64_t id, OpCode op, const Bytes &args = {}) {
    wire::Request request;
    request.prefix.id = id;
    request.interface = kInterface;
    request.op = op;
    request.args = args;
    request.timeout_ms = 60000;
    (void)endpoint_->send(peer_, xdr::encode(request));
  }
  void cancel(std::uint64_t id) { (void)endpoint_->send(peer_, xdr::encode(wire::Prefix{wire::Kind::kCancel, id})); }
  /// It was invited, and comes; where it is too late, it is invited again, and comes again.
  bool is_served(std::uint64_t id, OpCode op, int results) {
    int heeded = counts_[wire::Kind::kInvited] - 1;
    return eventually([&] {
      endpoint_->progress();
      if (const int invited = counts_[wire::Kind::kInvited]; std::exchange(heeded, invited) < invited) request(id, op);
      return counts_[wire::Kind::kResult] >= results;
    });
  }
  bool has(wire::Kind kind, int count) {
    return eventually([&] {
      endpoint_->progress();
      return counts_[kind] >= count;
    });
  }

 private:
  void on_message(PeerId, std::span<const std::byte> message) override {
    if (const auto prefix = wire::prefix_of(message)) ++counts_[prefix->kind];
  }
  void on_peer_lost(PeerId, const Error &) override {}

  std::unique_ptr<nnti::Endpoint> endpoint_;
  PeerId peer_;
  std::map<wire::Kind, int> counts_;
};

TEST(NssiInvitations, WhoDoesNotCome_LosesThePlaceToTheOthers) {
  ServiceThread server(limited({.requests = 1}, "inproc"));
  Caller caller(server.runtime->url());
  auto first = caller.call(kBlock);
  ASSERT_TRUE(eventually([&] { return (void)first.test(), server.service->blocked == 1; }));
  Lazy lazy(server.runtime->url());
  lazy.request(1ull << 32, kCount);
  ASSERT_TRUE(lazy.has(wire::Kind::kBusy, 1));
  auto behind = caller.call(kCount);
  server.service->release_blocked();
  ASSERT_TRUE(lazy.has(wire::Kind::kInvited, 1));
  ASSERT_TRUE(behind.wait().ok());
  lazy.request(1ull << 32, kCount);
  EXPECT_TRUE(lazy.has(wire::Kind::kInvited, 2)) << "late, it is invited anew";
  EXPECT_TRUE(lazy.is_served(1ull << 32, kCount, 1));
}

TEST(NssiInvitations, WhoNeedsItsInvitationNoMore_LeavesItToItsNextRequest) {
  ServiceThread server(limited({.requests_of_caller = 1}, "inproc"));
  Lazy lazy(server.runtime->url());
  lazy.request(1ull << 32, kBlock);
  lazy.request(1ull << 32 | 1, kCount);
  lazy.request(1ull << 32 | 2, kCount);
  ASSERT_TRUE(lazy.has(wire::Kind::kBusy, 2));
  server.service->release_blocked();
  ASSERT_TRUE(lazy.has(wire::Kind::kInvited, 1));
  lazy.cancel(1ull << 32 | 1);
  EXPECT_TRUE(lazy.has(wire::Kind::kInvited, 2)) << "nothing of this caller is in progress that could end";
  EXPECT_TRUE(lazy.is_served(1ull << 32 | 2, kCount, 2));
}

TEST(NssiInvitations, WhoComesOverAnotherConnectionIsInvitedThere) {
  ServiceThread server(limited({.requests = 1}, "inproc"));
  std::atomic<int> lost{0};
  server.runtime->on_peer_lost([&](PeerId, const Error &) { ++lost; });
  Caller caller(server.runtime->url());
  auto first = caller.call(kBlock);
  ASSERT_TRUE(eventually([&] { return (void)first.test(), server.service->blocked == 1; }));
  auto before = std::make_unique<Lazy>(server.runtime->url());
  before->request(1ull << 32, kCount);
  ASSERT_TRUE(before->has(wire::Kind::kBusy, 1));
  Lazy after(server.runtime->url());
  after.request(1ull << 32, kCount);
  ASSERT_TRUE(after.has(wire::Kind::kBusy, 1));
  before.reset();
  ASSERT_TRUE(eventually([&] { return lost == 1; }));
  server.service->release_blocked();
  EXPECT_TRUE(after.has(wire::Kind::kInvited, 1));
}

/// What is left of it would be found when the next invitation is taken back; AddressSanitizer sees that.
TEST(NssiInvitations, ACallerThatWasInvitedAndIsForgotten_LeavesNothing) {
  ServiceThread server(limited({.requests = 1}, "inproc"));
  std::atomic<int> lost{0};
  server.runtime->on_peer_lost([&](PeerId, const Error &) { ++lost; });
  Caller caller(server.runtime->url());
  auto first = caller.call(kBlock);
  ASSERT_TRUE(eventually([&] { return (void)first.test(), server.service->blocked == 1; }));
  {
    Lazy lazy(server.runtime->url());
    lazy.request(1ull << 32, kCount);
    ASSERT_TRUE(lazy.has(wire::Kind::kBusy, 1));
    server.service->release_blocked();
    ASSERT_TRUE(lazy.has(wire::Kind::kInvited, 1));
    lazy.cancel(1ull << 32);
    ASSERT_TRUE(lazy.has(wire::Kind::kCancelled, 1));
  }
  ASSERT_TRUE(first.wait().ok());
  ASSERT_TRUE(eventually([&] { return lost == 1; }));
  auto buffer = caller.runtime->allocate(64, nnti::Rights::kRemoteRead);
  ASSERT_TRUE(buffer.ok());
  CallOptions options;
  options.data = &*buffer;
  auto takes_the_room = std::make_unique<Call>(caller.call(kPullForever, options));
  auto held = caller.call(kCount);
  EXPECT_EQ(held.wait(Deadline::in(milliseconds(300))).code(), Code::kTimedOut) << "invitations end after 200 ms";
  takes_the_room.reset();
  EXPECT_TRUE(held.wait().ok());
}

TEST(NssiInvitations, WhatComesLargerThanItWasTurnedAway_IsCountedAsItIs) {
  ServiceThread server(limited({.requests = 1, .bytes = 4096}, "inproc"));
  Caller caller(server.runtime->url());
  auto first = caller.call(kBlock);
  ASSERT_TRUE(eventually([&] { return (void)first.test(), server.service->blocked == 1; }));
  Lazy lazy(server.runtime->url());
  lazy.request(1ull << 32, kEcho, Bytes(8));
  ASSERT_TRUE(lazy.has(wire::Kind::kBusy, 1));
  server.service->release_blocked();
  ASSERT_TRUE(lazy.has(wire::Kind::kInvited, 1));
  lazy.request(1ull << 32, kEcho, Bytes(2048));
  ASSERT_TRUE(lazy.has(wire::Kind::kResult, 1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(caller.call(kEcho, {}, Bytes(3000)).wait().ok());
}

TEST(NssiInvitations, OneSlotWaitsWithItsLastRequestOnly) {
  ServiceThread server(limited({.requests = 1}, "inproc"));
  Caller caller(server.runtime->url());
  auto first = caller.call(kBlock);
  ASSERT_TRUE(eventually([&] { return (void)first.test(), server.service->blocked == 1; }));
  Lazy lazy(server.runtime->url());
  for (std::uint64_t use = 1; use <= 100; ++use) lazy.request(use << 32, kCount);
  ASSERT_TRUE(lazy.has(wire::Kind::kBusy, 100));
  server.service->release_blocked();
  ASSERT_TRUE(lazy.has(wire::Kind::kInvited, 1));
  lazy.request(100ull << 32, kCount);
  EXPECT_TRUE(lazy.has(wire::Kind::kResult, 1));
  EXPECT_TRUE(caller.call(kNoop).wait().ok());
}

TEST(NssiInvitations, WhoLeavesItsResultsIsServedNoFurtherUntilItFetchesThem) {
  ServiceThread server(limited({.bytes_of_caller = 1 << 20}, "inproc"));
  Lazy lazy(server.runtime->url());
  const auto large = xdr::encode(Pattern{1 << 20});
  lazy.request(1ull << 32, kMake, large);
  ASSERT_TRUE(lazy.has(wire::Kind::kResult, 1));
  lazy.request(1ull << 32 | 1, kMake, large);
  EXPECT_TRUE(lazy.has(wire::Kind::kBusy, 1));
  Caller caller(server.runtime->url());
  EXPECT_TRUE(caller.call(kMake, {}, large).wait().ok());
}

TEST(NssiInvitations, ResultsThatWaitForTheirCallerCountAsItsRequests) {
  ServiceThread server(limited({.requests_of_caller = 2}, "inproc"));
  Lazy lazy(server.runtime->url());
  const auto large = xdr::encode(Pattern{1 << 20});
  for (std::uint64_t slot : {0, 1}) {
    lazy.request(1ull << 32 | slot, kMake, large);
    ASSERT_TRUE(lazy.has(wire::Kind::kResult, slot + 1));
  }
  lazy.request(1ull << 32 | 2, kMake, large);
  EXPECT_TRUE(lazy.has(wire::Kind::kBusy, 1));
}

TEST(NssiInvitations, RequestsAreChargedForTheResultsThatTheirOperationUsuallyHas) {
  ServiceThread server(limited({.bytes_of_caller = 4 << 20}, "inproc"));
  const auto large = xdr::encode(Pattern{1 << 20});
  Caller caller(server.runtime->url());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(caller.call(kMake, {}, large).wait().ok());
  Lazy lazy(server.runtime->url());
  for (std::uint64_t slot = 0; slot < 20; ++slot) lazy.request(1ull << 32 | slot, kMake, large);
  EXPECT_TRUE(lazy.has(wire::Kind::kBusy, 15)) << "their results were made although there was no room for them";
}

}  // namespace
}  // namespace nssi::testing
