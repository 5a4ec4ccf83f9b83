// SPDX-License-Identifier: BSD-3-Clause
// Requests that come twice: a caller of our own making sends what it likes, over as many connections as it likes.
#include <gtest/gtest.h>

#include <malloc.h>

#include <nssi/serve/session.hpp>
#include <nssi/testing/testing.hpp>
#include <nssi/wire/wire.hpp>

#include <map>

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t id_of(std::uint64_t use, std::uint64_t slot) { return use << 32 | slot; }

/// A connection to the service, without a client's inside.
class Connection final : public nnti::EventSink {
 public:
  explicit Connection(const std::string &url, std::byte session = std::byte{1}) {
    endpoint_ = *nnti::Endpoint::open(options_for("inproc", false).endpoint, *this);
    peer_ = *endpoint_->connect(url, Deadline::in(seconds(20)));
    wire::Hello hello;
    hello.session[0] = session;
    if (session != std::byte{0}) send(hello);
  }
  template <class Message> void send(const Message &message) { (void)endpoint_->send(peer_, xdr::encode(message)); }
  void request(std::uint64_t id, OpCode op, std::span<const std::byte> args = {}, std::uint32_t timeout_ms = 60000) {
    wire::Request request;
    request.prefix.id = id;
    request.interface = kInterface;
    request.op = op;
    request.args = args;
    request.timeout_ms = timeout_ms;
    send(request);
  }
  /// Results of the call that have come, as their bytes.
  const std::vector<Bytes> &results(std::uint64_t id) { return results_[id]; }
  const Error &failure(std::uint64_t id) { return failures_[id]; }
  bool has(std::uint64_t id, std::size_t count) {
    return eventually([&] {
      endpoint_->progress();
      return results_[id].size() >= count;
    });
  }
  /// An answer to this request shows that those to the ones before have come, too.
  void settle() {
    const auto id = id_of(1, 1000);
    request(id, kNoopShort);
    ASSERT_TRUE(has(id, 1));
  }

 private:
  void on_message(PeerId, std::span<const std::byte> message) override {
    wire::Result result;
    if (!wire::decode_result(message, result).ok()) return;
    results_[result.prefix.id].emplace_back(result.result.begin(), result.result.end());
    if (result.failure) failures_[result.prefix.id] = wire::to_error(*result.failure);
    if (result.long_result) results_[result.prefix.id].back().assign(1, std::byte{0xff});
  }
  void on_peer_lost(PeerId, const Error &) override {}

  std::unique_ptr<nnti::Endpoint> endpoint_;
  PeerId peer_;
  std::map<std::uint64_t, std::vector<Bytes>> results_;
  std::map<std::uint64_t, Error> failures_;
};

class NssiSessions : public ::testing::Test {
 protected:
  const std::string &url() { return server_.runtime->url(); }
  testing::Service &service() { return *server_.service; }
  ServiceThread server_{options_for("inproc", true)};
};

TEST_F(NssiSessions, TheSameRequestTwice_IsCarriedOutOnceAndAnsweredTwice) {
  Connection caller(url());
  const auto id = id_of(1, 0);
  caller.request(id, kCount);
  ASSERT_TRUE(caller.has(id, 1));
  caller.request(id, kCount);
  ASSERT_TRUE(caller.has(id, 2));
  EXPECT_EQ(caller.results(id)[0], caller.results(id)[1]);
  EXPECT_EQ(service().counted, 1);
}

TEST_F(NssiSessions, SentAgainOverAnotherConnection_TheAnswerComesThere) {
  auto first = std::make_unique<Connection>(url());
  const auto id = id_of(1, 0), other = id_of(1, 1);
  first->request(id, kCount);
  first->request(other, kBlockAndCount);
  ASSERT_TRUE(first->has(id, 1));
  ASSERT_TRUE(eventually([&] { return service().blocked == 1; }));
  first.reset();
  Connection second(url());
  second.request(id, kCount);
  second.request(other, kBlockAndCount);
  ASSERT_TRUE(second.has(id, 1));
  EXPECT_TRUE(second.results(other).empty()) << "it is still being carried out";
  service().release_blocked();
  ASSERT_TRUE(second.has(other, 1));
  EXPECT_EQ(service().counted, 2);
}

TEST_F(NssiSessions, TheNextUseOfASlot_EndsWhatWasKeptOfTheLast) {
  Connection caller(url());
  for (std::uint64_t use : {1, 2}) {
    caller.request(id_of(use, 0), kCount);
    ASSERT_TRUE(caller.has(id_of(use, 0), 1));
  }
  caller.request(id_of(1, 0), kCount);
  caller.settle();
  EXPECT_EQ(caller.results(id_of(1, 0)).size(), 1u) << "an old request was answered again";
  EXPECT_EQ(service().counted, 2);
}

TEST_F(NssiSessions, AnAnswerOutlivesItsConnectionOnlyUntilTheDeadline) {
  const auto id = id_of(1, 0);
  {
    Connection caller(url());
    caller.request(id, kCount, {}, 1);
    ASSERT_TRUE(caller.has(id, 1) || service().counted == 0);
  }
  const int counted = service().counted;
  std::this_thread::sleep_until(nessie::Clock::now() + milliseconds(700));  // the time itself is what is tested
  Connection late(url());
  late.request(id, kCount);
  ASSERT_TRUE(late.has(id, 1)) << "the session was kept beyond its deadline: its memory would grow for ever";
  EXPECT_EQ(service().counted, counted + 1);
}

TEST_F(NssiSessions, LongResultsAreOfferedAgain) {
  Connection caller(url());
  const auto id = id_of(1, 0);
  const auto args = xdr::encode(Pattern{1 << 20});
  caller.request(id, kMake, args);
  ASSERT_TRUE(caller.has(id, 1));
  caller.request(id, kMake, args);
  EXPECT_TRUE(caller.has(id, 2));
  caller.send(wire::Prefix{wire::Kind::kResultFetched, id});
  caller.request(id, kMake, args);
  caller.settle();
  EXPECT_EQ(caller.results(id).size(), 2u) << "it was said to be fetched";
}

TEST_F(NssiSessions, LongResultsAreNotKeptForACallerThatIsAwayForTooLong) {
  auto options = options_for("inproc", true);
  options.endpoint.config.set("nssi.reconnect", "50ms");
  ServiceThread server(std::move(options));
  const auto id = id_of(1, 0);
  const auto args = xdr::encode(Pattern{1 << 20});
  const auto ask = [&] {
    Connection caller(server.runtime->url());
    caller.request(id, kMake, args);
    EXPECT_TRUE(caller.has(id, 1));
    return caller.results(id)[0] == Bytes(1, std::byte{0xff}) ? Code::kOk : caller.failure(id).code;
  };
  EXPECT_EQ(ask(), Code::kOk);
  EXPECT_EQ(ask(), Code::kOk) << "it has come back soon";
  std::this_thread::sleep_until(nessie::Clock::now() + milliseconds(1500));  // the time itself is what is tested
  EXPECT_EQ(ask(), Code::kPeerLost) << "and it must not be carried out again";
}

/// A service that keeps answers for a moment only.
RuntimeOptions that_keeps_little() {
  auto options = options_for("inproc", true);
  options.endpoint.config.set("nssi.keep_answers", "20ms");
  options.endpoint.config.set("nssi.reconnect", "50ms");
  return options;
}

TEST_F(NssiSessions, ACallThatTakesLongerThanAnswersAreKept_HasItsResult) {
  constexpr OpCode kMakeLater = 100;
  ServiceThread server(that_keeps_little(), [](Runtime &runtime) {
    (void)runtime.add_operation({kInterface, 0, kMakeLater, "make_later", HandlerKind::kFiber, [&runtime](Request &r) {
                                   runtime.sleep_until(Deadline::in(milliseconds(100)));
                                   (void)r.reply(pattern(1 << 20));
                                 }});
  });
  auto client = open_runtime(options_for("inproc", false));
  const auto peer = *client->connect(server.runtime->url(), Deadline::in(seconds(20)));
  for (const auto deadline : {Deadline::in(seconds(60)), Deadline::never()}) {
    CallOptions options;
    options.deadline = deadline;
    auto call = client->call(at(peer), kMakeLater, Bytes(), options);
    ASSERT_TRUE(call.wait().ok()) << call.wait().error().to_string();
    EXPECT_EQ(call.result(), pattern(1 << 20));
  }
}

TEST_F(NssiSessions, WhoAsksAgainForAnAnswerThatIsNotKeptAnyMore_IsToldSo) {
  ServiceThread server(that_keeps_little());
  Connection caller(server.runtime->url());
  const auto id = id_of(1, 0);
  const Bytes args(1000);
  std::size_t answers = 0;
  EXPECT_TRUE(eventually([&] {
    caller.request(id, kEcho, args, wire::kNoTimeout);
    EXPECT_TRUE(caller.has(id, ++answers));
    return caller.results(id).back().empty();
  }));
  EXPECT_EQ(caller.failure(id).code, Code::kPeerLost);
}

TEST_F(NssiSessions, ManySmallAnswersAreNotKeptForACallerThatIsAwayForTooLong) {
  auto options = options_for("inproc", true);
  options.endpoint.config.set("nssi.reconnect", "50ms");
  ServiceThread server(std::move(options));
  const auto ask = [&](std::byte session, std::uint64_t calls) {
    Connection caller(server.runtime->url(), session);
    for (std::uint64_t slot = 0; slot < calls; ++slot) caller.request(id_of(1, slot), kEcho, Bytes(200));
    EXPECT_TRUE(caller.has(id_of(1, calls - 1), 1));
    const auto last = id_of(1, calls - 1);
    return caller.results(last)[0].empty() ? caller.failure(last).code : Code::kOk;
  };
  constexpr std::byte kMany{1}, kFew{2};
  EXPECT_EQ(ask(kMany, 200), Code::kOk);
  EXPECT_EQ(ask(kFew, 10), Code::kOk);
  std::this_thread::sleep_until(nessie::Clock::now() + milliseconds(1500));  // the time itself is what is tested
  EXPECT_EQ(ask(kMany, 200), Code::kPeerLost);
  EXPECT_EQ(ask(kFew, 10), Code::kOk);
}

std::size_t in_use() {
  const auto memory = ::mallinfo2();
  return memory.uordblks + memory.hblkhd;
}

TEST(NssiSessionTimers, ACallerWhoseConnectionFlaps_TakesNoMoreMemory) {
  Sessions sessions;
  sessions.keep_for(seconds(600));
  const wire::SessionId id{std::byte{1}};
  const auto flap = [&](std::uint64_t peer) {
    (void)sessions.greet({peer}, id);
    auto *slot = sessions.of({peer})->slot_of(0);
    if (slot->answer.empty()) slot->answer = Bytes(1);
    sessions.lose({peer}, Deadline::in(seconds(60)));
  };
  flap(1);
  const auto before = in_use();
  for (std::uint64_t peer = 2; peer < 10'000; ++peer) flap(peer);
  EXPECT_LT(in_use(), before + (64 << 10));
}

TEST_F(NssiSessions, OneRequestInTheLastSlot_TakesTheMemoryOfAFew) {
  Connection caller(url());
  caller.request(id_of(1, 0), kNoopShort);
  ASSERT_TRUE(caller.has(id_of(1, 0), 1));
  const auto before = in_use();
  caller.request(id_of(1, 0xFFFF), kCount);
  ASSERT_TRUE(caller.has(id_of(1, 0xFFFF), 1));
  EXPECT_LT(in_use(), before + (1 << 20));
}

TEST_F(NssiSessions, CallersAreKeptApart) {
  Connection one(url(), std::byte{1}), two(url(), std::byte{2});
  const auto id = id_of(1, 0);
  one.request(id, kCount);
  two.request(id, kCount);
  ASSERT_TRUE(one.has(id, 1));
  ASSERT_TRUE(two.has(id, 1));
  EXPECT_EQ(service().counted, 2);
}

TEST_F(NssiSessions, WhoHasNotSaidHello_IsRefused) {
  Connection stranger(url(), std::byte{0});
  stranger.request(id_of(1, 0), kCount);
  ASSERT_TRUE(stranger.has(id_of(1, 0), 1));
  EXPECT_EQ(stranger.failure(id_of(1, 0)).code, Code::kBadMessage);
  EXPECT_EQ(service().counted, 0);
}

TEST_F(NssiSessions, MoreCallsThanAnybodyMayHave_AreRefused) {
  Connection caller(url());
  const auto id = id_of(1, 0xFFFFFFFF);
  caller.request(id, kCount);
  ASSERT_TRUE(caller.has(id, 1));
  EXPECT_EQ(caller.failure(id).code, Code::kBadMessage);
}

TEST_F(NssiSessions, WhatIsNotOffered_IsToldApart) {
  Connection caller(url());
  struct {
    Interface interface;
    std::uint32_t provider;
    Code code;
    const char *says;
  } const wrong[] = {{{0x20009999, 1}, 0, Code::kNotFound, "does not offer program 0x20009999"},
                     {{kInterface.program, 7}, 0, Code::kUnsupported, "offers versions 1 to 1"},
                     {kInterface, 5, Code::kNotFound, "no provider 5"},
                     {kInterface, 0, Code::kNotFound, "no operation 4711"}};
  std::uint64_t slot = 0;
  for (const auto &each : wrong) {
    wire::Request request;
    request.prefix.id = id_of(1, slot++);
    request.interface = each.interface;
    request.provider = each.provider;
    request.op = 4711;
    caller.send(request);
    ASSERT_TRUE(caller.has(request.prefix.id, 1));
    EXPECT_EQ(caller.failure(request.prefix.id).code, each.code);
    EXPECT_NE(caller.failure(request.prefix.id).message.find(each.says), std::string::npos)
        << caller.failure(request.prefix.id).message;
  }
}

TEST(NssiByPeer, WhatIsKnownIsFoundUntilItIsErased) {
  ByPeer<int> known;
  EXPECT_EQ(known.find({5}), nullptr);
  for (std::uint64_t i = 1; i <= 1000; ++i) known.put({i}, static_cast<int>(i));
  known.put({7}, 70);
  EXPECT_EQ(*known.find({7}), 70);
  EXPECT_EQ(known.find_if([](int value) { return value == 900; }).value, 900u);
  for (std::uint64_t i = 1; i <= 1000; i += 2) known.erase({i});
  known.erase({7});
  known.erase({5000});
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_EQ(known.find({i}) != nullptr, i % 2 == 0) << i;
    if (i % 2 == 0) { EXPECT_EQ(*known.find({i}), static_cast<int>(i)); }
  }
  for (std::uint64_t i = 2; i <= 1000; i += 2) known.erase({i});
  EXPECT_EQ(known.find_if([](int) { return true; }).value, 0u);
  known.put({64}, 1);
  EXPECT_EQ(*known.find({64}), 1);
}

}  // namespace
}  // namespace nssi::testing
