// SPDX-License-Identifier: BSD-3-Clause
// Connections that are lost and made again, and what becomes of the calls that were in progress.
#include <gtest/gtest.h>

#include <nssi/runtime/engine.hpp>
#include <nssi/testing/testing.hpp>

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class NssiLinks : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
    server_ = std::make_unique<ServiceThread>(options_for(GetParam(), true));
    connect("20s");
  }
  void connect(const char *patience) {
    auto options = options_for(GetParam(), false);
    options.endpoint.config.set("nssi.reconnect", patience);
    client_ = open_runtime(std::move(options));
    auto peer = client_->connect(server_->runtime->url(), Deadline::in(seconds(20)));
    ASSERT_TRUE(peer.ok()) << peer.error().to_string();
    peer_ = *peer;
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
  }
  Call call(OpCode op, const Bytes &args = {}, const nnti::RegisteredBuffer *data = nullptr) {
    CallOptions options;
    options.data = data;
    return client_->call(at(peer_), op, args, options);
  }
  /// The service ends the connection, and nothing else.
  void break_connection() {
    CallOptions options;
    options.deadline = Deadline::in(milliseconds(200));  // nobody answers it
    static_cast<void>(client_->call(at(peer_), kHangUp, {}, options).wait().ok());
  }
  Service &service() { return *server_->service; }

  std::unique_ptr<ServiceThread> server_;
  std::unique_ptr<Runtime> client_;
  PeerId peer_;
};

TEST_P(NssiLinks, CallsInProgressGoOn_AndNoneIsCarriedOutTwice) {
  std::vector<Call> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(call(kBlockAndCount));
  ASSERT_TRUE(eventually([&] {
    (void)calls[0].test();
    return service().blocked == 20;
  }));
  break_connection();
  break_connection();
  EXPECT_EQ(service().blocked, 20);
  service().release_blocked();
  for (auto &each : calls) EXPECT_TRUE(each.wait().ok());
  EXPECT_EQ(service().counted, 20);
}

TEST_P(NssiLinks, CallsMadeWhileThereIsNoConnection_AreSentLater) {
  auto hang_up = call(kHangUp);
  std::vector<Call> calls;
  for (std::size_t i = 0; i < 50; ++i) calls.push_back(call(kEcho, Bytes(i * 200, std::byte(i))));
  for (std::size_t i = 0; i < 50; ++i) {
    const auto status = calls[i].wait();
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_EQ(calls[i].result(), Bytes(i * 200, std::byte(i)));
  }
}

TEST_P(NssiLinks, LongArgumentsResultsAndBulkDataSurvive) {
  const auto large = pattern(3 << 20);
  auto memory = pattern(5 << 20);
  auto buffer = client_->register_memory(memory, nnti::Rights::kRemoteRead);
  ASSERT_TRUE(buffer.ok());
  for (int round = 0; round < 5; ++round) {
    auto echo = call(kEcho, large);
    auto pull = call(kPull, {}, &*buffer);
    auto hang_up = call(kHangUp);
    auto make = call(kMake, xdr::encode(Pattern{1 << 20}));
    auto echo_status = echo.wait(), pull_status = pull.wait(), make_status = make.wait();
    ASSERT_TRUE(echo_status.ok()) << echo_status.error().to_string();
    ASSERT_TRUE(pull_status.ok()) << pull_status.error().to_string();
    ASSERT_TRUE(make_status.ok()) << make_status.error().to_string();
    EXPECT_EQ(echo.result(), large);
    EXPECT_TRUE(*xdr::decode<bool>(pull.result()));
    EXPECT_EQ(make.result(), pattern(1 << 20));
  }
}

TEST_P(NssiLinks, WhoMayNotReconnect_IsToldAtOnce) {
  connect("0");
  auto blocked = call(kBlock);
  auto hang_up = call(kHangUp);
  EXPECT_EQ(blocked.wait().code(), Code::kPeerLost);
  EXPECT_EQ(call(kNoop).wait().code(), Code::kPeerLost);
}

TEST_P(NssiLinks, AServiceThatDoesNotComeBack_IsLostWhenPatienceEnds) {
  connect("300ms");
  std::atomic<int> lost{0};
  client_->on_peer_lost([&](PeerId peer, const Error &) { lost += peer == peer_ ? 1 : 100; });
  auto blocked = call(kBlock);
  ASSERT_TRUE(call(kNoop).wait().ok());
  server_.reset();
  EXPECT_EQ(blocked.wait().code(), Code::kPeerLost);
  EXPECT_EQ(call(kNoop).wait().code(), Code::kPeerLost);
  EXPECT_EQ(lost, 1);
}

TEST_P(NssiLinks, DisconnectWhileThereIsNoConnection_CancelsWhatWaits) {
  ASSERT_TRUE(call(kNoop).wait().ok());
  server_.reset();
  auto waiting = call(kNoop);
  static_cast<void>(waiting.wait(Deadline::in(milliseconds(20))).ok());
  client_->disconnect(peer_);
  EXPECT_EQ(waiting.wait().code(), Code::kCancelled);
}

TEST_P(NssiLinks, DisconnectedByTheEndOfACall_ThatADisconnectHasEnded) {
  CallOptions options;
  options.on_over = [this] { client_->disconnect(peer_); };
  auto blocked = client_->call(at(peer_), kBlock, {}, options);
  ASSERT_TRUE(call(kNoop).wait().ok());
  auto another = client_->call(at(peer_), kBlock, {}, options);
  client_->disconnect(peer_);
  EXPECT_EQ(blocked.wait().code(), Code::kCancelled);
  EXPECT_EQ(another.wait().code(), Code::kCancelled);
}

/// The service listens, but is at something else: whoever connects waits for its answer.
TEST_P(NssiLinks, ARuntimeMayEndWhileItConnectsAgain) {
  ASSERT_TRUE(call(kNoop).wait().ok());
  server_->runtime->stop();
  server_->runtime->disconnect({1});
  CallOptions options;
  options.deadline = Deadline::in(milliseconds(200));
  EXPECT_FALSE(client_->call(at(peer_), kNoop, {}, options).wait().ok());
  client_.reset();
}

TEST_P(NssiLinks, ACallsOwnDeadlineHoldsWithoutAConnection) {
  ASSERT_TRUE(call(kNoop).wait().ok());
  server_.reset();
  CallOptions options;
  options.deadline = Deadline::in(milliseconds(50));
  EXPECT_EQ(client_->call(at(peer_), kNoop, {}, options).wait().code(), Code::kTimedOut);
}

TEST_P(NssiLinks, ADeadlineThatPassesWithoutAConnection_DoesNotSayThatTheCallWasNotSent) {
  CallOptions options;
  options.deadline = Deadline::in(milliseconds(300));
  auto blocked = client_->call(at(peer_), kBlockAndCount, {}, options);
  ASSERT_TRUE(eventually([&] {
    (void)blocked.test();
    return service().counted == 1;
  }));
  auto hang_up = call(kHangUp);
  ASSERT_TRUE(eventually([&] { return options.deadline->passed(); }));  // nobody drives meanwhile
  auto after = call(kNoop);
  ASSERT_TRUE(after.wait().ok());  // over another connection
  const auto status = blocked.wait();
  ASSERT_EQ(status.code(), Code::kTimedOut);
  EXPECT_NE(status.error().message.find("may have acted"), std::string::npos) << status.error().message;
}

INSTANTIATE_TEST_SUITE_P(Over, NssiLinks, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

TEST(NssiLinksThatAreGivenUp, AResultThatIsBeingFetched_IsFetchedOverTheNextConnection) {
  if (!available("ofi")) GTEST_SKIP() << "this machine has no transport ofi";
  const ServiceThread server(options_for("ofi", true));
  auto options = options_for("ofi", false);
  options.endpoint.config.set("nssi.reconnect", "20s");
  const auto client = *Engine::open(std::move(options));
  const auto peer = *client->connect(server.runtime->url(), Deadline::in(seconds(20)));
  const auto large = xdr::encode(Pattern{64 << 20});
  auto &call = *client->client().start(at(peer), kMake, Payload(large), {});
  ASSERT_TRUE(eventually([&] { return client->poke(), call.phase == CallState::Phase::kFetching; }));
  client->run_as_driver([&] { client->give_up_peer(peer, Error{Code::kPeerLost, "it takes nothing"}); });
  client->wait_until(call.done, call.waiter, Deadline::in(seconds(20)));
  EXPECT_TRUE(call.done);
  EXPECT_TRUE(call.status.ok()) << call.status.error().to_string();
  client->client().release(call);
}

/// Lets callers connect, and says nothing.
class Silent final : public nnti::EventSink {
 public:
  Silent()
      : endpoint_(*nnti::Endpoint::open(options_for("inproc", true).endpoint, *this)), thread_([this] {
          while (!ends_) endpoint_->progress();
        }) {}
  ~Silent() {
    ends_ = true;
    thread_.join();
  }
  const std::string &url() const { return endpoint_->url(); }

 private:
  void on_message(PeerId, std::span<const std::byte>) override {}
  void on_peer_connected(PeerId) override {}
  void on_peer_lost(PeerId, const Error &) override {}

  std::unique_ptr<nnti::Endpoint> endpoint_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

TEST(NssiLinksOfOperators, ConnectionsLostBeforeTheServiceHasSpoken_AreGivenUpWhenPatienceEnds) {
  auto silent = std::make_unique<Silent>();
  auto options = options_for("inproc", false);
  options.operators = nessie::Credential::generate();
  options.endpoint.config.set("nssi.reconnect", "100ms");
  const auto client = open_runtime(std::move(options));
  const auto peer = client->connect(silent->url(), Deadline::in(seconds(20)));
  ASSERT_TRUE(peer.ok());
  CallOptions patient;
  patient.deadline = Deadline::in(seconds(10));  // nssi.timeout is longer
  auto waits = client->call(at(*peer), kNoop, {}, patient);
  silent.reset();
  EXPECT_EQ(waits.wait().code(), Code::kPeerLost);
}

// --- a service that is started anew, at the same address ---------------------------------------------------------------

/// At a port that stays the same.
RuntimeOptions at_port(const std::string &port) {
  auto options = options_for("ofi", true);
  options.endpoint.config.set("nnti.ofi.port", port);
  return options;
}

/// One that is free now.
std::string free_port() {
  const auto url = open_runtime(options_for("ofi", true))->url();
  const auto at = url.rfind(':') + 1;
  return url.substr(at, url.find_first_not_of("0123456789", at) - at);
}

TEST(NssiRestart, WhatANewProcessCannotKnow_IsAnError_AndTheRestGoesOn) {
  if (!available("ofi")) GTEST_SKIP() << "this machine has no transport ofi";
  const auto port = free_port();
  auto server = std::make_unique<ServiceThread>(at_port(port));
  auto options = options_for("ofi", false);
  options.endpoint.config.set("nssi.reconnect", "20s");
  auto client = open_runtime(std::move(options));
  auto peer = client->connect(server->runtime->url(), Deadline::in(seconds(20)));
  ASSERT_TRUE(peer.ok());
  auto doubtful = client->call(at(*peer), kBlock, {});
  CallOptions repeatable;
  repeatable.idempotent = true;
  auto harmless = client->call(at(*peer), kBlock, {}, repeatable);
  ASSERT_TRUE(client->call(at(*peer), kNoop, {}).wait().ok());
  server.reset();
  server = std::make_unique<ServiceThread>(at_port(port));
  const auto status = doubtful.wait();
  ASSERT_EQ(status.code(), Code::kPeerLost);
  EXPECT_NE(status.error().message.find("started anew"), std::string::npos) << status.error().message;
  EXPECT_TRUE(client->call(at(*peer), kNoop, {}).wait().ok());
  server->service->release_blocked();
  EXPECT_TRUE(harmless.wait().ok());
}

}  // namespace
}  // namespace nssi::testing
