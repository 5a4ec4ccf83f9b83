// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/conformance/conformance.hpp"

#include <poll.h>

namespace nnti::conformance {
namespace {

class Connections : public Conformance {};

TEST_P(Connections, SayWhichTransportReachesThePeerAndWhy) {
  Pair pair(subject());
  EXPECT_EQ(pair.client.endpoint->transport_of(pair.to_server), subject().transport);
  EXPECT_NE(pair.client.endpoint->explain(pair.to_server), "");
  EXPECT_EQ(pair.client.endpoint->transport_of(PeerId{99}), "");
}

TEST_P(Connections, WithAnotherCredentialAreRefusedAndTheServerGoesOn) {
  auto credential = nessie::Credential::generate();
  Node server(subject(), credential, true), stranger(subject(), nessie::Credential::generate(), false),
      friendly(subject(), credential, false);
  Driver driver(server);
  auto refused = stranger.endpoint->connect(server.endpoint->url(), Deadline::in(kWatchdog));
  ASSERT_EQ(refused.code(), Code::kRefused);
  EXPECT_NE(refused.error().message.find("credential"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(friendly.endpoint->connect(server.endpoint->url(), Deadline::in(kWatchdog)).ok());
}

TEST_P(Connections, ToNobodyArePeerLost) {
  auto credential = nessie::Credential::generate();
  Node client(subject(), credential, false);
  std::string url;
  {
    Node server(subject(), credential, true);
    url = server.endpoint->url();
  }
  auto connected = client.endpoint->connect(url, Deadline::in(kWatchdog));
  // A transport that knows its endpoints by name may know already that there is none.
  EXPECT_TRUE(connected.code() == Code::kPeerLost ||
              (connected.code() == Code::kUnsupported && subject().transport.ends_with("inproc")))
      << static_cast<int>(connected.code());
}

TEST_P(Connections, ToAServerThatDoesNothingTimeOut) {
  auto credential = nessie::Credential::generate();
  Node server(subject(), credential, true), client(subject(), credential, false);
  EXPECT_EQ(client.endpoint->connect(server.endpoint->url(), Deadline::in(50ms)).code(), Code::kTimedOut);
  // The attempt that was given up disturbs nobody.
  ASSERT_TRUE(drive({&server, &client}, [&] { return server.endpoint->progress() == 0; }));
  Driver driver(server);
  EXPECT_TRUE(client.endpoint->connect(server.endpoint->url(), Deadline::in(kWatchdog)).ok());
}

TEST_P(Connections, ToWhatIsNoUrlAreInvalid) {
  Node client(subject(), {}, false);
  for (const char *url : {"", "nonsense", "shm:", ";", "shm://"})
    EXPECT_EQ(client.endpoint->connect(url, Deadline::in(1s)).code(), Code::kInvalidArgument) << url;
}

TEST_P(Connections, ThatNoTransportCanMakeSayWhy) {
  Node client(subject(), {}, false);
  auto connected = client.endpoint->connect("pigeon://coop/7;shm://0123456789abcdef-1/x", Deadline::in(1s));
  EXPECT_EQ(connected.code(), Code::kUnsupported);
}

TEST_P(Connections, EndForThePeerAfterAllThatWasSent) {
  Pair pair(subject());
  ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, bytes_of("last")).ok());
  pair.client.endpoint->disconnect(pair.to_server);
  ASSERT_TRUE(pair.drive_until([&] { return !pair.server.seen.lost.empty(); }));
  ASSERT_EQ(pair.server.seen.messages.size(), 1u);
  EXPECT_EQ(text_of(pair.server.seen.messages[0]), "last");
  EXPECT_EQ(pair.server.seen.lost[0].first, pair.to_client);
  EXPECT_EQ(pair.server.seen.lost[0].second.code, Code::kPeerLost);
  for (int i = 0; i < 1000; ++i) pair.server.endpoint->progress();
  EXPECT_EQ(pair.server.seen.lost.size(), 1u);
  EXPECT_TRUE(pair.client.seen.lost.empty()) << "who disconnects is not told";
}

TEST_P(Connections, MayBeEndedWithinACallback) {
  Pair pair(subject());
  int seen = 0;
  pair.server.seen.message_hook = [&](PeerId from, std::span<const std::byte>) {
    ++seen;
    pair.server.endpoint->disconnect(from);
  };
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, bytes_of("x")).ok());
  ASSERT_TRUE(pair.drive_until([&] { return !pair.client.seen.lost.empty(); }));
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(pair.server.seen.lost.empty());
}

TEST_P(Connections, OfOneServerAreKeptApart) {
  auto credential = nessie::Credential::generate();
  Node server(subject(), credential, true);
  std::vector<std::unique_ptr<Node>> clients;
  std::vector<PeerId> peers;
  {
    Driver driver(server);
    for (int i = 0; i < 8; ++i) {
      clients.push_back(std::make_unique<Node>(subject(), credential, false));
      auto peer = clients.back()->endpoint->connect(server.endpoint->url(), Deadline::in(kWatchdog));
      ASSERT_TRUE(peer.ok()) << peer.error().to_string();
      peers.push_back(*peer);
    }
  }
  server.seen.message_hook = [&](PeerId from, std::span<const std::byte> message) {
    EXPECT_TRUE(server.endpoint->send(from, message).ok());
  };
  for (std::size_t i = 0; i < clients.size(); ++i)
    ASSERT_TRUE(clients[i]->endpoint->send(peers[i], bytes_of(std::to_string(i))).ok());
  for (std::size_t i = 0; i < clients.size(); ++i) {
    ASSERT_TRUE(drive({&server, clients[i].get()}, [&] { return !clients[i]->seen.messages.empty(); }));
    EXPECT_EQ(text_of(clients[i]->seen.messages[0]), std::to_string(i));
  }
  clients.erase(clients.begin() + 3);
  ASSERT_TRUE(drive({&server}, [&] { return server.seen.lost.size() == 1; }));
  ASSERT_TRUE(clients.back()->endpoint->send(peers.back(), bytes_of("still here")).ok());
  EXPECT_TRUE(drive({&server, clients.back().get()}, [&] { return clients.back()->seen.messages.size() == 2; }));
}

TEST_P(Connections, ManyTimesMadeAndEndedNeverReuseAPeerId) {
  auto credential = nessie::Credential::generate();
  Node server(subject(), credential, true), client(subject(), credential, false);
  std::vector<std::uint64_t> ids;
  Driver driver(server);
  for (int i = 0; i < 20; ++i) {
    auto peer = client.endpoint->connect(server.endpoint->url(), Deadline::in(kWatchdog));
    ASSERT_TRUE(peer.ok()) << peer.error().to_string();
    for (auto id : ids) EXPECT_NE(peer->value, id);
    ids.push_back(peer->value);
    client.endpoint->disconnect(*peer);
  }
}

class Waiting : public Conformance {};

TEST_P(Waiting, EndsAtItsDeadline) {
  Node node(subject(), {}, true);
  auto deadline = Deadline::in(20ms);
  auto watchdog = Deadline::in(kWatchdog);
  while (!deadline.passed() && !watchdog.passed()) node.endpoint->wait(deadline);
  EXPECT_TRUE(deadline.passed());
  node.endpoint->wait(Deadline::now());
}

TEST_P(Waiting, EndsWhenWokenByAnotherThread) {
  Node node(subject(), {}, true);
  std::atomic<bool> woken{false};
  std::thread waker([&] {
    woken.store(true);
    node.endpoint->wake();
  });
  while (!woken.load()) node.endpoint->wait(Deadline::never());
  waker.join();
}

TEST_P(Waiting, AWakeBeforeTheWaitIsNotLost) {
  Node node(subject(), {}, true);
  node.endpoint->progress();
  node.endpoint->wake();
  node.endpoint->wait(Deadline::never());
}

TEST_P(Waiting, FindsNothingReadyWhenNothingHappens) {
  Pair pair(subject());
  ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, bytes_of("hello")).ok());
  ASSERT_TRUE(pair.drive_until([&] { return pair.server.seen.messages.size() == 1; }));
  for (Node *node : {&pair.client, &pair.server}) {
    auto descriptor = node->endpoint->wait_fd();
    ASSERT_TRUE(descriptor.ok());
    const auto rests = [&] {
      if (!node->endpoint->arm()) return false;
      pollfd ready{*descriptor, POLLIN, 0};
      const bool nothing = ::poll(&ready, 1, 0) == 0;
      node->endpoint->disarm();
      return nothing;
    };
    EXPECT_TRUE(pair.drive_until(rests));
  }
}

TEST_P(Waiting, EndsWhenAMessageArrivesHoweverLongItSlept) {
  for (const char *spin_us : {"0", "50"}) {
    Pair pair(subject(), {{"nnti.spin_us", spin_us}});
    std::atomic<int> received{0};
    pair.server.seen.message_hook = [&](PeerId from, std::span<const std::byte> message) {
      ++received;
      EXPECT_TRUE(pair.server.endpoint->send(from, message).ok());
    };
    Driver driver(pair.server);  // waits for a minute at a time
    for (std::size_t i = 1; i <= (kSanitized ? 300u : 2000u); ++i) {
      ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, bytes_of("x")).ok());
      ASSERT_TRUE(drive({&pair.client}, [&] { return pair.client.seen.messages.size() == i; }))
          << "a wake-up was lost after " << i;
    }
  }
}

TEST_P(Connections, WhatIsSentBeforeTheConnectorHasLooked_Arrives) {
  const auto credential = nessie::Credential::generate();
  Node server(subject(), credential, true), client(subject(), credential, false);
  auto attempt = client.endpoint->start_connecting(server.endpoint->url(), Deadline::in(kWatchdog));
  ASSERT_TRUE(attempt.ok()) << attempt.error().to_string();
  std::optional<Result<PeerId>> outcome;
  bool is_sent = false;
  const auto is_over = [&] { return outcome && !client.seen.messages.empty(); };
  for (const auto end = Deadline::in(kWatchdog); !is_over() && !end.passed();) {
    if (!outcome) outcome = attempt->advance();
    server.endpoint->progress();
    if (!is_sent && !server.seen.connected.empty())
      is_sent = server.endpoint->send(server.seen.connected[0], bytes_of("first")).ok();
    client.endpoint->progress();
  }
  ASSERT_EQ(client.seen.messages.size(), 1u);
  EXPECT_EQ(text_of(client.seen.messages[0]), "first");
  EXPECT_TRUE(outcome && outcome->ok());
}

/// Polling sees memory, but peers come by sockets.
TEST_P(Waiting, WhoPollsForLong_NoticesPeersThatCome_AndIsWokenWhenHeSleepsAfterAll) {
  { Pair pair(subject(), {{"nnti.spin_us", "600000000"}}); }  // connects
  Pair pair(subject(), {{"nnti.spin_us", "4000"}});
  std::atomic<int> received{0};
  pair.server.seen.message_hook = [&](PeerId, std::span<const std::byte>) { ++received; };
  Driver driver(pair.server);
  for (int i = 1; i <= 20; ++i) {
    std::this_thread::sleep_for(8ms);
    ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, bytes_of("x")).ok());
    for (const auto end = Deadline::in(kWatchdog); received != i && !end.passed(); std::this_thread::yield())
      pair.client.endpoint->progress();
    ASSERT_EQ(received, i) << "a wake-up was lost";
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Connections, testing::ValuesIn(subjects()), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Over, Waiting, testing::ValuesIn(subjects()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::conformance
