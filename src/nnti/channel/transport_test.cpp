// SPDX-License-Identifier: BSD-3-Clause
// What a channel makes of links that come and say what they like, over a transport that does what the test says.
#include "nnti/channel/transport.hpp"

#include "nnti/conformance/tools_testing.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <list>

namespace nnti::channel {
namespace {

using namespace std::chrono_literals;
using test::Bytes;

class HandLink final : public Connection {
 public:
  explicit HandLink(Transport &transport) : transport_(transport) {}
  Transport &transport() override { return transport_; }
  std::string explain() const override { return "by hand"; }
  std::size_t max_message_bytes() const override { return 8192; }
  bool try_send(MessageKind, std::span<const std::byte> message) override {
    sent.push_back(decode_header(message)->type);
    return true;
  }
  void get(const RemoteBuffer &, std::uint64_t, std::span<std::byte>, Completion &) override {}
  void put(const RemoteBuffer &, std::uint64_t, std::span<const std::byte>, Completion &) override {}
  void close() override { closed = true; }

  std::vector<std::uint8_t> sent;  ///< types of messages
  bool closed = false;

 private:
  Transport &transport_;
};

class HandTransport final : public Transport {
 public:
  explicit HandTransport(TransportEvents &its_events) : events(its_events) {}
  std::string_view name() const override { return "hand"; }
  Reliability reliability() const override { return Reliability::kUntilBroken; }
  std::string url() const override { return "hand://here"; }
  Status can_reach(const nessie::Url &) const override { return {}; }
  Result<std::unique_ptr<Connecting>> connect(const nessie::Url &, Deadline) override { return nobody_; }
  Result<std::unique_ptr<TransportMemory>> register_memory(const MemoryRegion &) override { return nobody_; }
  std::optional<MemoryRegion> find_memory(const RemoteBuffer &) const override { return {}; }
  std::size_t progress() override {
    if (auto happens = std::exchange(next, nullptr)) happens();
    return 0;
  }
  bool ready() override { return next != nullptr; }
  int wait_fd() const override { return -1; }
  bool arm() override { return true; }
  void disarm(bool) override {}

  HandLink &accept() {
    auto &link = links_.emplace_back(*this);
    events.accepted(link);
    return link;
  }
  void say(HandLink &link, Type type, const Bytes &body) {
    Bytes message(kHeaderBytes);
    encode_header({static_cast<std::uint8_t>(type), 0, 0}, std::span(message).first<kHeaderBytes>());
    message.insert(message.end(), body.begin(), body.end());
    events.message(link, MessageKind::kUser, message);
  }
  void say_nonsense(HandLink &link) { events.message(link, MessageKind::kUser, Bytes(1)); }

  TransportEvents &events;
  std::function<void()> next;  ///< in the next progress()

 private:
  const Error nobody_{Code::kUnsupported, "nobody is there"};
  std::list<HandLink> links_;
};

/// The endpoint above.
struct Above final : TransportEvents {
  void accepted(Connection &session) override { sessions.push_back(&session); }
  void message(Connection &, MessageKind, std::span<const std::byte>) override {}
  void lost(Connection &, Loss, const Error &) override { ++losses; }
  std::vector<Connection *> sessions;
  int losses = 0;
};

struct Accepting : testing::Test {
  void SetUp() override {
    const auto opener = [&](const TransportOptions &options) -> Result<std::unique_ptr<Transport>> {
      auto made = std::make_unique<HandTransport>(options.events);
      below = made.get();
      return std::unique_ptr<Transport>(std::move(made));
    };
    auto opened = open({credential, config, above, poller, true, "hand", time}, Reliability::kUntilBroken, opener);
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    channel = std::move(*opened);
  }
  static Bytes first_opening() { return encode_opening({false, 1, {std::byte{7}}, {64, 65536}}); }
  void happen(std::function<void()> what) {
    below->next = std::move(what);
    channel->progress();
  }

  static inline nessie::Clock::time_point now{1h};
  const nessie::TimeSource time{[] { return now; }, [](nessie::Clock::duration by) { now += by; }};
  const nessie::Credential credential;
  const nessie::Config config;
  Poller poller;
  Above above;
  std::unique_ptr<Transport> channel;
  HandTransport *below = nullptr;
};

/// Within one progress(): the session that is over is still there, and somebody may be using it.
TEST_F(Accepting, NameOfASessionThatHasJustEndedIsUnknown) {
  HandLink *second = nullptr;
  happen([&] {
    auto &first = below->accept();
    below->say(first, Type::kOpen, first_opening());
    below->say_nonsense(first);
    second = &below->accept();
    below->say(*second, Type::kOpen, first_opening());
  });
  EXPECT_EQ(above.losses, 1);
  EXPECT_EQ(above.sessions.size(), 1u);
  EXPECT_EQ(second->sent, std::vector<std::uint8_t>{static_cast<std::uint8_t>(Type::kUnknown)});
  EXPECT_TRUE(second->closed);
}

/// Told of an operation's end, it waits for what comes next, as callbacks may.
struct MakesProgress final : Completion {
  explicit MakesProgress(Accepting &its_test) : test(its_test) {}
  void on_complete(Status result) override {
    code = result.code();
    test.now += 6s;  // longer than a closed session lingers
    test.channel->progress();
  }
  Accepting &test;
  Code code = Code::kOk;
};

TEST_F(Accepting, CompletionThatClosingBringsMayMakeProgress) {
  HandLink *link = nullptr;
  happen([&] {
    link = &below->accept();
    below->say(*link, Type::kOpen, first_opening());
  });
  ASSERT_EQ(above.sessions.size(), 1u);
  happen([&] { below->events.lost(*link, Loss::kBroken, {Code::kPeerLost, "the test says so"}); });
  MakesProgress first(*this);
  test::Outcome second;
  std::byte byte{};
  above.sessions[0]->get({}, 0, {&byte, 1}, first);
  above.sessions[0]->get({}, 0, {&byte, 1}, second);
  above.sessions[0]->close();
  EXPECT_EQ(first.code, Code::kCancelled);
  EXPECT_EQ(second.times, 1) << "the session went in the middle of its close()";
  EXPECT_EQ(above.losses, 0);
}

}  // namespace
}  // namespace nnti::channel
