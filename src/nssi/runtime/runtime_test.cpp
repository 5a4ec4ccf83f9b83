// SPDX-License-Identifier: BSD-3-Clause
// NSSI's promises over every transport of this machine, client and service in one process.
#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <functional>
#include <random>

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class NssiRuntime : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    start(options_for(GetParam(), true));
  }
  void start(RuntimeOptions server_options) {
    client_.reset();
    server_.reset();
    server_ = std::make_unique<ServiceThread>(std::move(server_options));
    auto client = Runtime::open(options_for(GetParam(), false));
    ASSERT_TRUE(client.ok()) << client.error().to_string();
    client_ = *std::move(client);
    auto peer = client_->connect(server_->runtime->url(), Deadline::in(seconds(20)));
    ASSERT_TRUE(peer.ok()) << peer.error().to_string();
    peer_ = *peer;
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
  }
  Call call(OpCode op, const Bytes &args = {}, const CallOptions &options = {}) {
    return client_->call(at(peer_), op, args, options);
  }
  Call call_with(OpCode op, const nnti::RegisteredBuffer &data) {
    CallOptions options;
    options.data = &data;
    return call(op, {}, options);
  }
  Service &service() { return *server_->service; }

  std::unique_ptr<ServiceThread> server_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
};

TEST_P(NssiRuntime, AnswersAnEmptyRequest) {
  for (auto op : {kNoopShort, kNoop}) {
    auto c = call(op);
    EXPECT_TRUE(c.wait().ok());
    EXPECT_TRUE(c.test());
    EXPECT_TRUE(c.result().empty());
  }
}

TEST_P(NssiRuntime, CarriesArgumentsAndResultsOfEverySize) {
  for (std::size_t size : {0, 1, 3, 63, 64, 4000, 4096, 4097, 10000, 65536, 1 << 20, 8 << 20}) {
    auto bytes = pattern(size);
    auto c = call(kEcho, bytes);
    ASSERT_TRUE(c.wait().ok()) << size;
    EXPECT_EQ(c.result(), bytes);
  }
}

TEST_P(NssiRuntime, KeepsManyLongArgumentsApart) {
  std::vector<Call> calls;
  for (std::size_t i = 0; i < 50; ++i) calls.push_back(call(kEcho, Bytes(5000 + i, std::byte(i))));
  for (std::size_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(calls[i].wait().ok());
    EXPECT_EQ(calls[i].result(), Bytes(5000 + i, std::byte(i)));
  }
}

TEST_P(NssiRuntime, HandlersPullTheCallersBuffer) {
  for (auto op : {kPull, kPullShort}) {
    for (std::size_t size : {1, 4096, 100001, 4 << 20}) {
      auto memory = pattern(size);
      auto buffer = client_->register_memory(memory, nnti::Rights::kRemoteRead);
      ASSERT_TRUE(buffer.ok());
      auto c = call_with(op, *buffer);
      auto status = c.wait();
      ASSERT_TRUE(status.ok()) << size << " " << status.error().to_string();
      EXPECT_TRUE(*xdr::decode<bool>(c.result()));
    }
  }
}

TEST_P(NssiRuntime, HandlersPushIntoTheCallersBuffer) {
  for (std::size_t size : {1, 4096, 100001, 4 << 20}) {
    auto buffer = client_->allocate(size, nnti::Rights::kRemoteWrite);
    ASSERT_TRUE(buffer.ok());
    auto c = call_with(kPush, *buffer);
    ASSERT_TRUE(c.wait().ok()) << size;
    auto expected = pattern(size);
    EXPECT_EQ(std::memcmp(buffer->bytes().data(), expected.data(), size), 0);
  }
}

TEST_P(NssiRuntime, RefusesATransferAgainstTheBuffersRights) {
  auto memory = pattern(4096);
  auto buffer = client_->register_memory(memory, nnti::Rights::kRemoteRead);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(call_with(kPush, *buffer).wait().code(), Code::kRefused);
  EXPECT_EQ(memory, pattern(4096));
}

TEST_P(NssiRuntime, PullWithoutABufferIsTheHandlersError) {
  auto c = call(kPull);
  EXPECT_EQ(c.wait().code(), Code::kInvalidArgument);
}

TEST_P(NssiRuntime, ServesOthersWhileAThousandHandlersBlock) {
  std::vector<Call> blocked;
  for (int i = 0; i < 1000; ++i) blocked.push_back(call(kBlock));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(call(kNoop).wait().ok());
  EXPECT_TRUE(eventually([&] {
    client_->in_fiber();
    (void)blocked[0].test();
    return service().blocked == 1000;
  }));
  for (auto &c : blocked) EXPECT_FALSE(c.test());
  ASSERT_TRUE(call(kRelease).wait().ok());
  for (auto &c : blocked) EXPECT_TRUE(c.wait().ok());
}

TEST_P(NssiRuntime, WhoWantsLittle_IsServedWhileOthersHoldAllFibers) {
  auto options = options_for(GetParam(), true);
  options.max_fibers = 128;
  start(std::move(options));
  std::vector<Call> blocked;
  for (int i = 0; i < 200; ++i) blocked.push_back(call(kBlock));
  auto waits = call(kNoop);
  ASSERT_TRUE(call(kNoopShort).wait().ok());
  EXPECT_FALSE(waits.test()) << "behind his own";
  auto other = open_runtime(options_for(GetParam(), false));
  const auto peer = *other->connect(server_->runtime->url(), Deadline::in(seconds(20)));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(other->call(at(peer), kNoop, Bytes{}).wait().ok());
  EXPECT_EQ(service().blocked, 128);
  ASSERT_TRUE(call(kRelease).wait().ok());
  for (auto &c : blocked) EXPECT_TRUE(c.wait().ok());
  EXPECT_TRUE(waits.wait().ok());
}

TEST_P(NssiRuntime, WhoComes_IsHeardOfBeforeAllHandlersThatComputeHaveEnded) {
  std::vector<Call> computing;
  for (int i = 0; i < 300; ++i) computing.push_back(call(kCompute));
  ASSERT_TRUE(computing[0].wait().ok());
  EXPECT_TRUE(call(kNoopShort).wait().ok());
  EXPECT_LT(service().counted, 300);
  for (auto &c : computing) EXPECT_TRUE(c.wait().ok());
  EXPECT_EQ(service().counted, 300);
}

TEST_P(NssiRuntime, RequestsBeyondTheFibersWaitInOrderOfArrival) {
  auto options = options_for(GetParam(), true);
  options.max_fibers = 4;
  start(std::move(options));
  std::vector<Call> blocked;
  for (int i = 0; i < 20; ++i) blocked.push_back(call(kBlock));
  ASSERT_TRUE(call(kNoopShort).wait().ok());  // needs no fiber
  EXPECT_LE(service().blocked, 4);
  ASSERT_TRUE(call(kRelease).wait().ok());
  for (auto &c : blocked) EXPECT_TRUE(c.wait().ok());
}

TEST_P(NssiRuntime, UnknownOperationIsNotFound) {
  auto status = call(kMissing).wait();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.error().message.find(std::to_string(kMissing)), std::string::npos);
}

TEST_P(NssiRuntime, UndecodableArgumentsAreABadMessage) {
  EXPECT_EQ(call(kDecode, Bytes(3)).wait().code(), Code::kBadMessage);
}

TEST_P(NssiRuntime, HandlerWithoutAResultIsNoResult) { EXPECT_EQ(call(kNoReply).wait().code(), Code::kNoResult); }

TEST_P(NssiRuntime, ExceptionOfAHandlerReachesTheCallerWithItsText) {
  auto status = call(kThrow).wait();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.error().message.find("the roof is on fire"), std::string::npos);
}

TEST_P(NssiRuntime, ErrorArrivesAsItWasReplied) {
  auto status = call(kFail).wait();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_EQ(status.error().scope, nessie::Scope::kService);
  EXPECT_EQ(status.error().cause, ENOSPC);
  EXPECT_EQ(status.error().message, "No space left on device: free some");
}

TEST_P(NssiRuntime, AHandlersErrorThatIsNone_IsItsFault) {
  for (const auto &[code, scope] : {std::pair{0, 0}, {-7, 0}, {INT32_MIN, 0}, {999, 1}, {int(Code::kIo), 9}}) {
    auto status = call(kFailAs, xdr::encode(FailAs{code, scope})).wait();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kInternal);
    EXPECT_EQ(status.error().scope, nessie::Scope::kService);
    const auto &text = status.error().message;
    for (const auto &part : {"the handler of operation " + std::to_string(kFailAs), "code " + std::to_string(code),
                             "scope " + std::to_string(scope), std::string("made up")})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST_P(NssiRuntime, SecondReplyIsRefused) {
  ASSERT_TRUE(call(kReplyTwice).wait().ok());
  EXPECT_TRUE(eventually([&] { return service().second_reply == Code::kExists; }));
}

TEST_P(NssiRuntime, WaitThatTimesOutCanBeRepeated) {
  auto c = call(kBlock);
  EXPECT_EQ(c.wait(Deadline::in(milliseconds(5))).code(), Code::kTimedOut);
  EXPECT_FALSE(c.test());
  service().release_blocked();
  EXPECT_TRUE(c.wait().ok());
}

TEST_P(NssiRuntime, CallPastItsDeadlineIsTimedOut) {
  CallOptions options;
  options.deadline = Deadline::in(milliseconds(20));
  auto c = call(kBlock, {}, options);
  EXPECT_EQ(c.wait().code(), Code::kTimedOut);
  EXPECT_TRUE(c.test());
  EXPECT_EQ(c.wait().code(), Code::kTimedOut);
  EXPECT_TRUE(call(kNoop).wait().ok());
}

TEST_P(NssiRuntime, DeadlineThatHasPassedIsToldWithoutSending) {
  CallOptions options;
  options.deadline = Deadline::now();
  EXPECT_EQ(call(kNoop, {}, options).wait().code(), Code::kTimedOut);
}

TEST_P(NssiRuntime, DroppedCallLeavesItsBufferAlone) {
  auto memory = pattern(4096);
  auto buffer = client_->register_memory(memory, nnti::Rights::kRemoteRead);
  ASSERT_TRUE(buffer.ok());
  {
    auto c = call_with(kPullForever, *buffer);
    ASSERT_TRUE(eventually([&] {
      (void)c.test();
      return service().pulls > 2;
    }));
  }
  const int pulls_then = service().pulls;
  EXPECT_TRUE(eventually([&] { return service().pull_ended == Code::kCancelled; }));
  EXPECT_EQ(service().pulls, pulls_then);
}

TEST_P(NssiRuntime, CallToALostPeerFailsAtOnce) {
  std::vector<Call> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(call(kBlock));
  ASSERT_TRUE(call(kNoop).wait().ok());
  server_.reset();
  for (auto &c : calls) EXPECT_FALSE(c.wait(Deadline::in(seconds(20))).ok());
  auto late = call(kNoop);
  EXPECT_EQ(late.wait().code(), Code::kPeerLost);
}

TEST_P(NssiRuntime, DisconnectCancelsTheCallsToThatPeer) {
  auto c = call(kBlock);
  client_->disconnect(peer_);
  EXPECT_EQ(c.wait().code(), Code::kCancelled);
}

TEST_P(NssiRuntime, WrongCredentialCannotConnect) {
  auto options = options_for(GetParam(), false);
  options.endpoint.credential = nessie::Credential::generate();
  auto stranger = Runtime::open(std::move(options));
  ASSERT_TRUE(stranger.ok());
  EXPECT_EQ((*stranger)->connect(server_->runtime->url(), Deadline::in(seconds(20))).code(), Code::kRefused);
  EXPECT_TRUE(call(kNoop).wait().ok());
}

TEST_P(NssiRuntime, SurvivesMessagesThatAreNotItsOwn) {
  struct Silent : nnti::EventSink {
    void on_message(PeerId, std::span<const std::byte>) override {}
    void on_peer_lost(PeerId, const Error &) override {}
  } sink;
  auto endpoint = nnti::Endpoint::open(options_for(GetParam(), false).endpoint, sink);
  ASSERT_TRUE(endpoint.ok());
  auto peer = (*endpoint)->connect(server_->runtime->url(), Deadline::in(seconds(20)));
  ASSERT_TRUE(peer.ok());
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    Bytes garbage(random() % 100);
    for (auto &b : garbage) b = std::byte(random());
    for (int at = 0; const int b : {0x4E, 0x53, 0x02, int(random() % 8)})  // half of them look like NSSI's
      if (i % 2 != 0 && garbage.size() > 4) garbage[static_cast<std::size_t>(at++)] = std::byte(b);
    (void)(*endpoint)->send(*peer, garbage);
    (*endpoint)->progress();
  }
  EXPECT_TRUE(call(kNoop).wait().ok());
}

TEST_P(NssiRuntime, SeveralThreadsCallAndWaitAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 100; ++i) {
        Bytes args(i * 8, std::byte(t));
        auto c = call(kEcho, args);
        if (c.wait().ok() && c.result() == args) ++good;
      }
    });
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(good, 400);
}

TEST_P(NssiRuntime, CallsMadeWhileAnotherThreadRunsProgress) {
  std::thread driver([&] { client_->run(); });
  for (std::size_t i = 0; i < 100; ++i) {
    auto c = call(kEcho, Bytes(i));
    ASSERT_TRUE(c.wait().ok());
    EXPECT_EQ(c.result().size(), i);
  }
  { auto dropped = call(kBlock); }
  client_->stop();
  driver.join();
}

TEST_P(NssiRuntime, StopBeforeRunIsNotLost) {
  client_->stop();
  client_->run();
}

TEST_P(NssiRuntime, FibersSleepSpawnAndCallWithoutBlockingOthers) {
  int ended = 0;
  const auto end = [&] {
    if (++ended == 2) client_->stop();
  };
  client_->spawn([&] {
    client_->sleep_until(Deadline::in(milliseconds(20)));
    end();
  });
  client_->spawn([&] {
    EXPECT_TRUE(client_->in_fiber());
    EXPECT_TRUE(call(kNoop).wait().ok());
    end();
  });
  EXPECT_FALSE(client_->in_fiber());
  client_->run();
  EXPECT_EQ(ended, 2);
}

TEST_P(NssiRuntime, EventsAreSetFromOtherThreads) {
  Event event(*client_);
  std::atomic<bool> waiting{false};
  Code early = Code::kOk, late = Code::kInternal;
  client_->spawn([&] {
    early = event.wait(Deadline::in(milliseconds(1))).code();
    waiting = true;
    late = event.wait(Deadline::in(seconds(20))).code();
    client_->stop();
  });
  std::thread setter([&] {
    while (!waiting) std::this_thread::yield();
    event.set();
  });
  client_->run();
  setter.join();
  EXPECT_EQ(early, Code::kTimedOut);
  EXPECT_EQ(late, Code::kOk);
}

TEST_P(NssiRuntime, EventOutsideAFiberIsInvalid) {
  Event event(*client_);
  EXPECT_EQ(event.wait(Deadline::now()).code(), Code::kInvalidArgument);
}

TEST_P(NssiRuntime, FiberMayWaitInACatchBlock) {
  int caught = 0;
  for (int i = 0; i < 4; ++i)
    client_->spawn([&, i] {
      try {
        throw int(i);
      } catch (int value) {
        EXPECT_TRUE(call(kNoop).wait().ok());
        caught += value == i;
        if (caught == 4) client_->stop();
      }
    });
  client_->run();
  EXPECT_EQ(caught, 4);
}

TEST_P(NssiRuntime, WhatWaitsForAFiber_BeginsInItsCallersTurn) {
  auto options = options_for(GetParam(), true);
  options.max_fibers = 1;
  start(std::move(options));
  auto other = open_runtime(options_for(GetParam(), false));
  const auto peer = *other->connect(server_->runtime->url(), Deadline::in(seconds(20)));
  auto blocking = call(kBlock);
  ASSERT_TRUE(eventually([&] { return (void)blocking.test(), service().blocked == 1; }));
  std::vector<Call> many, few;
  for (int i = 0; i < 4; ++i) many.push_back(call(kCount));
  ASSERT_TRUE(call(kNoopShort).wait().ok());
  for (int i = 0; i < 2; ++i) few.push_back(other->call(at(peer), kCount, {}));
  ASSERT_TRUE(other->call(at(peer), kNoopShort, {}).wait().ok());
  ASSERT_TRUE(call(kRelease).wait().ok());
  std::vector<std::int32_t> places;
  for (auto *calls : {&many, &few})
    for (auto &each : *calls) {
      ASSERT_TRUE(each.wait().ok());
      places.push_back(*xdr::decode<std::int32_t>(each.view()));
    }
  EXPECT_EQ(places, (std::vector<std::int32_t>{1, 3, 5, 6, 2, 4}));
}

TEST_P(NssiRuntime, WhoHasManyHandlersThatCompute_DoesNotHoldUpWhoHasFew) {
  constexpr OpCode kHold = 1000;
  std::atomic<bool> holds{false}, may_go_on{false};
  server_ = std::make_unique<ServiceThread>(options_for(GetParam(), true), [&](Runtime &runtime) {
    (void)runtime.add_operation({kInterface, 0, kHold, "hold", HandlerKind::kFiber, [&](Request &) {
                                   for (holds = true; !may_go_on;) std::this_thread::yield();
                                 }});
  });
  peer_ = *client_->connect(server_->runtime->url(), Deadline::in(seconds(20)));
  auto other = open_runtime(options_for(GetParam(), false));
  const auto peer = *other->connect(server_->runtime->url(), Deadline::in(seconds(20)));
  ASSERT_TRUE(other->call(at(peer), kNoop, {}).wait().ok());
  auto hold = call(kHold);
  ASSERT_TRUE(eventually([&] { return (void)hold.test(), holds.load(); }));
  std::vector<Call> many;
  for (int i = 0; i < 200; ++i) many.push_back(call(kCompute));
  auto few = other->call(at(peer), kCount, {});
  may_go_on = true;
  ASSERT_TRUE(few.wait().ok());
  const auto place = *xdr::decode<std::int32_t>(few.view());
  EXPECT_LT(place, 150);
  for (auto &each : many) EXPECT_TRUE(each.wait().ok());
}

TEST_P(NssiRuntime, DestroyedRuntimeEndsItsFibersAndCalls) {
  Code fiber = Code::kOk;
  bool woken = false;
  Event event(*client_);
  client_->spawn([&] { fiber = event.wait().code(); });
  client_->spawn([&] {
    client_->sleep_until(Deadline::never());
    woken = true;
  });
  client_->spawn([&] { client_->stop(); });
  client_->run();
  auto c = call(kBlock);
  client_.reset();
  EXPECT_EQ(fiber, Code::kCancelled);
  EXPECT_TRUE(woken);
  EXPECT_EQ(c.wait().code(), Code::kCancelled);
}

TEST_P(NssiRuntime, DestroyedServerEndsItsHandlers) {
  auto c = call(kBlock);
  ASSERT_TRUE(eventually([&] {
    (void)c.test();
    return service().blocked == 1;
  }));
  server_.reset();
  EXPECT_FALSE(c.wait(Deadline::in(seconds(20))).ok());
}

TEST_P(NssiRuntime, OperationsHaveOneHandler) {
  EXPECT_EQ(client_->add_operation({kInterface, 0, 1, "one", HandlerKind::kShort, [](Request &) {}}).code(), Code::kOk);
  EXPECT_EQ(client_->add_operation({kInterface, 0, 1, "two", HandlerKind::kShort, [](Request &) {}}).code(),
            Code::kExists);
}

TEST_P(NssiRuntime, OperationsMayBeAddedWhileOthersAreCalled) {
  constexpr OpCode kFirst = 1000, kMost = 9000;
  std::atomic<OpCode> last{kNoopShort};
  std::thread adding([&] {
    for (auto op = kFirst; op < kMost; ++op) {
      EXPECT_TRUE(
          server_->runtime
              ->add_operation({kInterface, 0, op, "more", HandlerKind::kShort, [](Request &r) { (void)r.reply(); }})
              .ok());
      last = op;
    }
  });
  bool all_answered = true;
  while (last != kMost - 1) all_answered &= call(last).wait().ok();
  adding.join();
  EXPECT_TRUE(all_answered);
  for (auto op : {kFirst, kMost - 1}) EXPECT_TRUE(call(op).wait().ok());
}

TEST_P(NssiRuntime, HandlersMayAddOperations) {
  auto &runtime = *server_->runtime;
  for (const auto kind : {HandlerKind::kShort, HandlerKind::kFiber}) {
    const auto op = 1000 + static_cast<OpCode>(kind);
    const auto add = [&runtime, op](Request &r) {
      auto status = runtime.add_operation(
          {kInterface, 0, op + 100, "added", HandlerKind::kShort, [](Request &it) { (void)it.reply(); }});
      (void)(status.ok() ? r.reply() : r.reply_error(status.error()));
    };
    ASSERT_TRUE(runtime.add_operation({kInterface, 0, op, "adds", kind, add}).ok());
    EXPECT_EQ(call(op + 100).wait().code(), Code::kNotFound);
    EXPECT_TRUE(call(op).wait().ok());
    EXPECT_TRUE(call(op + 100).wait().ok());
    EXPECT_EQ(call(op).wait().code(), Code::kExists);
  }
}

TEST_P(NssiRuntime, StoppedWhenDone_ServesAgainWhenItRunsAgain) {
  auto &runtime = *server_->runtime;
  runtime.stop_when_done(Deadline::in(seconds(20)));
  server_->join();
  std::thread again([&] { runtime.run(); });
  EXPECT_TRUE(call(kNoop).wait().ok());
  runtime.stop();
  again.join();
}

TEST_P(NssiRuntime, ConnectAndLossAreTold) {
  std::atomic<int> connected{0}, lost{0};
  auto second = Runtime::open(options_for(GetParam(), true));
  ASSERT_TRUE(second.ok());
  (*second)->on_peer_connected([&](PeerId) { ++connected; });
  (*second)->on_peer_lost([&](PeerId, const Error &) { ++lost; });
  std::thread thread([&] { (*second)->run(); });
  auto peer = client_->connect((*second)->url(), Deadline::in(seconds(20)));
  EXPECT_TRUE(peer.ok());
  EXPECT_TRUE(eventually([&] { return connected == 1; }));
  if (peer.ok()) client_->disconnect(*peer);
  EXPECT_TRUE(eventually([&] { return lost == 1; }));
  (*second)->stop();
  thread.join();
}

INSTANTIATE_TEST_SUITE_P(Over, NssiRuntime, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

// --- processes --------------------------------------------------------------------------------------------------------

class NssiProcesses : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
  }
};

TEST_P(NssiProcesses, KilledServerIsATypedErrorForEveryCall) {
  Process server({NSSI_TEST_PEER, "serve", GetParam()});
  auto client = Runtime::open(options_for(GetParam(), false));
  ASSERT_TRUE(client.ok());
  auto peer = (*client)->connect(server.line(), Deadline::in(seconds(20)));
  ASSERT_TRUE(peer.ok()) << peer.error().to_string();
  std::vector<Call> calls;
  for (int i = 0; i < 100; ++i) calls.push_back((*client)->call(at(*peer), kBlock, {}));
  ASSERT_TRUE((*client)->call(at(*peer), kNoop, {}).wait().ok());
  server.kill_now();
  for (auto &c : calls) EXPECT_EQ(c.wait(Deadline::in(seconds(20))).code(), Code::kPeerLost);
}

TEST_P(NssiProcesses, KilledClientEndsItsPullsAndHarmsNobody) {
  ServiceThread server(options_for(GetParam(), true));
  Process client({NSSI_TEST_PEER, "lend", GetParam(), server.runtime->url(), "1000000"});
  ASSERT_EQ(client.line(), "lending");
  ASSERT_TRUE(eventually([&] { return server.service->pulls > 2; }));
  client.kill_now();
  EXPECT_TRUE(eventually([&] { return server.service->pull_ended != Code::kOk; }));
  auto other = Runtime::open(options_for(GetParam(), false));
  ASSERT_TRUE(other.ok());
  auto peer = (*other)->connect(server.runtime->url(), Deadline::in(seconds(20)));
  ASSERT_TRUE(peer.ok());
  EXPECT_TRUE((*other)->call(at(*peer), kNoop, {}).wait().ok());
}

INSTANTIATE_TEST_SUITE_P(Over, NssiProcesses, ::testing::Values("shm", "ofi"),
                         [](const auto &info) { return info.param; });

TEST(NssiArrivals, OneThatThrows_HoldsUpNobody) {
  ServiceThread server(options_for("inproc", true), [](Runtime &runtime) {
    Operation noted{kInterface, 0, 300, "noted", HandlerKind::kFiber, [](Request &r) { (void)r.reply(); }};
    noted.arrival = [](Request &) { throw std::runtime_error("no more ink"); };
    ASSERT_TRUE(runtime.add_operation(std::move(noted)).ok());
  });
  const auto client = open_runtime(options_for("inproc", false));
  const auto peer = *client->connect(server.runtime->url(), Deadline::in(seconds(20)));
  EXPECT_TRUE(client->call(at(peer), 300, {}).wait().ok());
  EXPECT_TRUE(client->call(at(peer), kNoop, {}).wait().ok());
}

}  // namespace
}  // namespace nssi::testing
