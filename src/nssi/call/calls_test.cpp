// SPDX-License-Identifier: BSD-3-Clause
// Calls of which several are in progress, and calls for which nobody waits.
#include <gtest/gtest.h>

#include <atomic>

#include <nssi/runtime/engine.hpp>
#include <nssi/testing/testing.hpp>

#include <coroutine>

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A coroutine that runs until it is over, whoever started it.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

class NssiCalls : public ::testing::Test {
 protected:
  Call call(OpCode op, const Bytes &args = {}, const CallOptions &options = {}) {
    return client_->call(at(peer_), op, args, options);
  }
  Service &service() { return *server_.service; }
  /// The client is driven while this lives.
  struct Driven {
    explicit Driven(Runtime &runtime) : runtime(runtime), thread([&runtime] { runtime.run(); }) {}
    ~Driven() {
      runtime.stop();
      thread.join();
    }
    Runtime &runtime;
    std::thread thread;
  };

  ServiceThread server_{options_for("inproc", true)};
  std::unique_ptr<Runtime> client_ = open_runtime(options_for("inproc", false));
  PeerId peer_ = *client_->connect(server_.runtime->url(), Deadline::in(seconds(20)));
};

TEST_F(NssiCalls, AnEncoderThatThrows_EndsItsCall_AndTheNextOneGoesWell) {
  for (const bool has_another_driver : {false, true}) {
    std::optional<Driven> driven;
    if (has_another_driver) driven.emplace(*client_);
    for (const std::size_t size : {std::size_t{10}, std::size_t{1} << 20}) {
      std::atomic<int> over = 0;
      CallOptions options;
      options.on_over = [&] { ++over; };
      auto failed = client_->call(
          at(peer_), kEcho, size, [](auto) { throw std::runtime_error("no more ink"); }, options);
      const auto status = failed.wait();
      ASSERT_EQ(status.code(), Code::kInternal);
      EXPECT_NE(status.error().message.find("no more ink"), std::string::npos);
      EXPECT_TRUE(eventually([&] { return over == 1; }));
      EXPECT_TRUE(call(kNoop).wait().ok());
    }
  }
}

/// 2^32 calls, one after the other, take an hour.
TEST_F(NssiCalls, WhenTheNumberOfASlotsCallsIsUsedUp_CallsGoOn) {
  auto client = *Engine::open(options_for("inproc", false));
  const auto peer = *client->connect(server_.runtime->url(), Deadline::in(seconds(20)));
  const auto number_of = [&](std::uint64_t used_up_by) {
    CallOptions options;
    options.deadline = Deadline::in(seconds(20));
    auto &call = *client->client().start(at(peer), kNoop, Payload(), options);
    client->wait_until(call.done, call.waiter, *options.deadline);
    EXPECT_TRUE(call.done && call.status.ok());
    const auto number = call.id;
    call.id |= used_up_by << 32;
    client->client().release(call);
    return number;
  };
  std::uint64_t last = number_of(0);
  for (int i = 0; i < 3; ++i) {
    const auto next = number_of(0);
    EXPECT_GT(next, last);
    last = next;
  }
  number_of(0xFFFFFFFF);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(static_cast<std::uint32_t>(number_of(0)), 1u) << "another slot's";
}

TEST_F(NssiCalls, WaitAny_ReturnsTheOneThatIsOver) {
  std::vector<Call> calls;
  calls.push_back(call(kBlock));
  calls.push_back(call(kNoop));
  calls.push_back(call(kBlock));
  auto place = wait_any(calls);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(*place, 1u);
  EXPECT_EQ(*wait_any(calls), 1u) << "it counts again";
  calls.erase(calls.begin() + 1);
  EXPECT_EQ(wait_any(calls, Deadline::in(milliseconds(10))).code(), Code::kTimedOut);
  service().release_blocked();
  EXPECT_TRUE(wait_any(calls).ok());
  EXPECT_TRUE(wait_all(calls).ok());
}

TEST_F(NssiCalls, WaitAny_FindsACallWhoseOwnDeadlinePassed) {
  CallOptions options;
  options.deadline = Deadline::in(milliseconds(20));
  std::vector<Call> calls;
  calls.push_back(call(kBlock));
  calls.push_back(call(kBlock, {}, options));
  auto place = wait_any(calls);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(*place, 1u);
  EXPECT_EQ(calls[1].wait().code(), Code::kTimedOut);
  service().release_blocked();
}

TEST_F(NssiCalls, WaitAny_RefusesToWaitForNothing) {
  EXPECT_EQ(wait_any(std::span<Call>()).code(), Code::kInvalidArgument);
  const std::vector<Call *> nothing(2);
  EXPECT_EQ(wait_any(nothing).code(), Code::kInvalidArgument);
  std::vector<Call> empty(1);
  EXPECT_TRUE(wait_any(empty).ok()) << "no call is one that is over";
}

TEST_F(NssiCalls, WaitAny_WaitsForCallsOfSeveralRuntimes) {
  auto other = open_runtime(options_for("inproc", false));
  auto peer = *other->connect(server_.runtime->url(), Deadline::in(seconds(20)));
  auto here = call(kBlock), there = other->call(at(peer), kBlock, {});
  const std::vector<Call *> calls{&here, nullptr, &there};
  EXPECT_EQ(wait_any(calls, Deadline::in(milliseconds(10))).code(), Code::kTimedOut);
  there = other->call(at(peer), kNoop, {});
  auto place = wait_any(calls);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(*place, 2u);
  service().release_blocked();
  EXPECT_EQ(*wait_any(std::span(calls).first(1)), 0u);
}

TEST_F(NssiCalls, WaitAny_WithoutTime_StillMakesProgress) {
  std::vector<Call> calls;
  calls.push_back(call(kNoop));
  EXPECT_TRUE(eventually([&] { return wait_any(calls, Deadline::now()).ok(); }));
}

TEST_F(NssiCalls, WaitAll_GivesTheFirstError) {
  std::vector<Call> calls;
  for (auto op : {kNoop, kFail, kThrow}) calls.push_back(call(op));
  EXPECT_EQ(wait_all(calls).code(), Code::kIo);
  for (auto &each : calls) EXPECT_TRUE(each.is_over());
}

TEST_F(NssiCalls, WaitAll_TakesPointers) {
  auto here = call(kNoop), there = call(kFail);
  const std::vector<Call *> calls{&here, nullptr, &there};
  EXPECT_EQ(wait_all(calls).code(), Code::kIo);
  EXPECT_TRUE(here.is_over());
}

TEST_F(NssiCalls, ACallThatIsCancelled_TellsSo_AndItsHandlerHearsIt) {
  auto buffer = client_->allocate(64, nnti::Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  CallOptions options;
  options.data = &*buffer;
  auto pulled = call(kPullForever, {}, options);
  ASSERT_TRUE(eventually([&] { return (void)pulled.test(), service().pulls > 0; }));
  pulled.cancel();
  EXPECT_TRUE(pulled.is_over());
  EXPECT_EQ(pulled.wait().code(), Code::kCancelled);
  EXPECT_TRUE(eventually([&] { return service().pull_ended == Code::kCancelled; }));
  pulled.cancel();
  EXPECT_EQ(pulled.wait().code(), Code::kCancelled);
}

TEST_F(NssiCalls, ACallThatIsOver_IsNotCancelled) {
  auto echo = call(kEcho, pattern(3));
  EXPECT_TRUE(echo.wait().ok());
  echo.cancel();
  EXPECT_TRUE(echo.wait().ok());
  EXPECT_EQ(echo.result(), pattern(3));
  Call().cancel();
  client_.reset();
  echo.cancel();
}

TEST_F(NssiCalls, WhoIsToBeCalledBack_HearsThatItWasCancelled) {
  Driven driven(*client_);
  std::atomic<int> told{0};
  auto blocked = call(kBlock);
  blocked.when_over([&] { ++told; });
  blocked.cancel();
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  service().release_blocked();
}

TEST_F(NssiCalls, Multicast_AsksAllAndKeepsTheirOrder) {
  ServiceThread another(options_for("inproc", true));
  auto second = *client_->connect(another.runtime->url(), Deadline::in(seconds(20)));
  const std::vector<nssi::Service> services{at(peer_), at(second), {peer_, {1, 1}, 0}};
  auto calls = client_->multicast(services, kEcho, pattern(10));
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(wait_all(calls).code(), Code::kNotFound);
  for (int i : {0, 1}) EXPECT_EQ(calls[i].result(), pattern(10));
}

TEST_F(NssiCalls, AFiberWaitsForAnyOfSeveral) {
  Driven driven(*client_);
  std::atomic<int> found{-1};
  std::atomic<bool> ended{false};
  client_->spawn([&] {
    std::vector<Call> calls;
    calls.push_back(call(kBlock));
    calls.push_back(call(kNoop));
    auto place = wait_any(calls);
    found = place.ok() ? static_cast<int>(*place) : -2;
    service().release_blocked();
    (void)wait_all(calls);
    ended = true;
  });
  EXPECT_TRUE(eventually([&] { return ended.load(); }));
  EXPECT_EQ(found, 1);
}

TEST_F(NssiCalls, WhenItIsOver_ItsCallbackMayWaitForTheNext) {
  Driven driven(*client_);
  std::atomic<int> told{0};
  auto first = call(kBlock);
  first.when_over([&] {
    auto next = call(kEcho, pattern(3));
    if (next.wait().ok() && next.result() == pattern(3)) ++told;
  });
  EXPECT_EQ(told, 0);
  ASSERT_TRUE(eventually([&] { return service().blocked == 1; }));
  service().release_blocked();
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  first.when_over([&] { ++told; });
  EXPECT_TRUE(eventually([&] { return told == 2; })) << "it was over already";
}

TEST_F(NssiCalls, ACallThatIsDropped_CallsNobodyBack) {
  Driven driven(*client_);
  std::atomic<int> told{0};
  for (auto op : {kBlock, kNoop}) {
    auto dropped = call(op);
    dropped.when_over([&] { ++told; });
  }
  auto over = call(kNoop);
  EXPECT_TRUE(over.wait().ok());
  { const auto dropped = std::move(over); }
  service().release_blocked();
  EXPECT_TRUE(call(kNoop).wait().ok());
  std::atomic<bool> settled{false};
  client_->spawn([&] { settled = true; });
  EXPECT_TRUE(eventually([&] { return settled.load(); }));
  EXPECT_LE(told, 1) << "only the one that was over before it was dropped may have been told";
}

TEST_F(NssiCalls, OneWayCallsThatNobodyAnswers_EndAtTheirDeadline) {
  Driven driven(*client_);
  server_.stop();
  for (int i = 0; i < 100; ++i) {
    std::atomic<bool> told{false};
    CallOptions options;
    options.one_way = true;
    options.deadline = Deadline::in(milliseconds(5));
    options.on_over = [&] { told = true; };
    (void)call(kNoop, {}, options);
    ASSERT_TRUE(eventually([&] { return told.load(); }));
  }
}

TEST_F(NssiCalls, OnOver_MayThrow_WhichEndsNothing) {
  for (const OpCode op : {kNoop, kFail}) {
    CallOptions options;
    options.on_over = [] { throw std::runtime_error("nobody wants to know"); };
    EXPECT_EQ(call(op, {}, options).wait().ok(), op == kNoop);
    options.on_over = [] { throw 1; };
    EXPECT_EQ(call(op, {}, options).wait().ok(), op == kNoop);
  }
  EXPECT_TRUE(call(kNoop).wait().ok());
}

TEST_F(NssiCalls, CallbacksAboutPeersMayThrow_WhichEndsNothing) {
  std::atomic<int> told{0};
  ServiceThread server(options_for("inproc", true));
  server.runtime->on_peer_connected([&](PeerId) { ++told, throw std::runtime_error("one more"); });
  server.runtime->on_peer_lost([&](PeerId, const Error &) { ++told, throw std::runtime_error("one less"); });
  for (int i = 1; i <= 2; ++i) {
    auto client = open_runtime(options_for("inproc", false));
    const auto peer = *client->connect(server.runtime->url(), Deadline::in(seconds(20)));
    EXPECT_TRUE(client->call(at(peer), kNoop, Bytes{}).wait().ok());
    client.reset();
    EXPECT_TRUE(eventually([&] { return told == 2 * i; }));
  }
}

TEST_F(NssiCalls, TwoServicesOfAProcess_BothHearOfPeers_InTheirOrder) {
  struct Hearing {
    explicit Hearing(Runtime &runtime, std::string &heard, char name) {
      runtime.on_peer_connected([&heard, name](PeerId) { heard += name; });
      runtime.on_peer_lost([&heard, name](PeerId, const Error &) { heard += name; });
    }
  };
  std::string heard;
  std::atomic<bool> lost{false};
  ServiceThread server(options_for("inproc", true));
  const Hearing first(*server.runtime, heard, 'a'), second(*server.runtime, heard, 'b');
  server.runtime->on_peer_lost([&](PeerId, const Error &) { lost = true; });
  auto client = open_runtime(options_for("inproc", false));
  const auto peer = *client->connect(server.runtime->url(), Deadline::in(seconds(20)));
  EXPECT_TRUE(client->call(at(peer), kNoop, Bytes{}).wait().ok());
  client.reset();
  EXPECT_TRUE(eventually([&] { return lost.load(); }));
  EXPECT_EQ(heard, "abab");
}

TEST_F(NssiCalls, OnOver_IsCalledOnceAlsoForACallThatIsDropped) {
  std::atomic<int> told{0};
  CallOptions options;
  options.on_over = [&] { ++told; };
  EXPECT_TRUE(call(kEcho, pattern(10), options).wait().ok());
  EXPECT_EQ(told, 1);
  { auto dropped = call(kBlock, {}, options); }
  EXPECT_EQ(told, 2);
  service().release_blocked();
  EXPECT_TRUE(call(kNoop).wait().ok());
  EXPECT_EQ(told, 2) << "a slot that is used again";
}

TEST_F(NssiCalls, NobodyWaits_TheDeadlineEndsItAllTheSame) {
  Driven driven(*client_);
  auto buffer = client_->allocate(64, nnti::Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  for (const bool lends : {false, true}) {
    std::atomic<bool> told{false};
    CallOptions options;
    options.deadline = Deadline::in(milliseconds(20));
    if (lends) options.data = &*buffer;
    auto blocked = call(kBlock, {}, options);
    blocked.when_over([&] { told = true; });
    EXPECT_TRUE(eventually([&] { return told.load(); }));
    EXPECT_EQ(blocked.wait().code(), Code::kTimedOut);
  }
  service().release_blocked();
}

Detached ask_twice(Runtime &runtime, PeerId peer, std::atomic<int> &answers) {
  for (int i = 0; i < 2; ++i) {
    auto call = runtime.call(at(peer), kNoop, {});
    if ((co_await std::move(call)).ok()) ++answers;
  }
}

TEST_F(NssiCalls, ACoroutineAwaitsThem) {
  Driven driven(*client_);
  std::atomic<int> answers{0};
  for (int i = 0; i < 100; ++i) ask_twice(*client_, peer_, answers);
  EXPECT_TRUE(eventually([&] { return answers == 200; }));
}

Detached await_one(Call call, std::atomic<Code> &code) { code = (co_await std::move(call)).code(); }

TEST_F(NssiCalls, TheRuntimeGoesWhileItConnectsAgain_WhoWaitsForAnyHearsThatItWasCancelled) {
  auto options = options_for("inproc", false);
  options.endpoint.config.set("nssi.reconnect", "60s");
  auto client = open_runtime(std::move(options));
  auto server = std::make_unique<ServiceThread>(options_for("inproc", true));
  const auto peer = *client->connect(server->runtime->url(), Deadline::in(seconds(20)));
  Code code = Code::kOk;
  auto call = client->call(at(peer), kBlock, {}), also = client->call(at(peer), kBlock, {});
  client->spawn([&] {
    const std::vector<Call *> calls{&call, &also};
    code = wait_any(calls).code();
  });
  ASSERT_TRUE(eventually([&] { return (void)call.test(), server->service->blocked == 2; }));
  server.reset();
  ASSERT_TRUE(eventually([&] { return (void)call.test(), !client->can_view(peer); })) << "it has not noticed";
  client.reset();
  EXPECT_EQ(code, Code::kCancelled);
}

TEST_F(NssiCalls, TheRuntimeGoes_WhoAwaitsHearsThatItWasCancelled) {
  std::atomic<Code> code{Code::kOk};
  await_one(call(kBlock), code);
  client_.reset();
  EXPECT_EQ(code, Code::kCancelled);
  service().release_blocked();
}

}  // namespace
}  // namespace nssi::testing
