// SPDX-License-Identifier: BSD-3-Clause
// A queue that is shared by senders who want more than their part.
#include "nnti/conformance/tools_testing.hpp"

#include <nnti/nnti.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

namespace nnti {
namespace {

using namespace std::chrono_literals;

/// Counts what came from whom, and checks that it is in order.
struct Sorter final : EventSink {
  void on_message(PeerId from, std::span<const std::byte> message) override {
    std::uint32_t value = 0;
    ASSERT_EQ(message.size(), sizeof value);
    std::memcpy(&value, message.data(), sizeof value);
    EXPECT_EQ(value, came[from.value]++) << "of " << from.value;
  }
  void on_peer_lost(PeerId, const Error &error) override { ADD_FAILURE() << error.to_string(); }
  std::map<std::uint64_t, std::uint32_t> came;
};

struct Sender {
  Sorter sink;
  std::unique_ptr<Endpoint> endpoint;
  PeerId to_server;
  std::uint32_t sent = 0;
  bool send() {
    bool taken = endpoint->send(to_server, std::as_bytes(std::span(&sent, 1))).ok();
    sent += taken;
    return taken;
  }
};

struct CrowdedQueue : testing::Test {
  nessie::Credential credential = nessie::Credential::generate();
  Sorter sorter;
  std::unique_ptr<Endpoint> server = open(sorter, true);

  std::unique_ptr<Endpoint> open(EventSink &sink, bool listen) {
    EndpointOptions options;
    options.transports = {"shm"};
    options.credential = credential;
    options.listen = listen;
    options.config.set("nnti.channel", "shared-queue");
    options.config.set("nnti.shared_queue", "16");
    options.config.set("nnti.send_queue", "4");
    return std::move(*Endpoint::open(std::move(options), sink));
  }
  void connect(Sender &sender) {
    sender.endpoint = open(sender.sink, false);
    std::atomic<bool> done{false};
    std::thread connecting([&] {
      auto peer = sender.endpoint->connect(server->url(), nessie::Deadline::in(kWatchdog));
      EXPECT_TRUE(peer.ok());
      if (peer.ok()) sender.to_server = *peer;
      done = true;
      server->wake();
    });
    while (!done)
      if (server->progress() == 0) server->wait(nessie::Deadline::in(kWatchdog));
    connecting.join();
  }
  /// Both sides sleep whenever they have nothing to do. Returns when all has come from `peer`, who that is here, or the
  /// watchdog barks.
  void send_all(Sender &sender, std::uint32_t messages, std::uint64_t peer) {
    const auto watchdog = nessie::Deadline::in(kWatchdog);
    std::thread sending([&] {
      while (sender.sent < messages && !watchdog.passed())
        if (!sender.send() && sender.endpoint->progress() == 0) sender.endpoint->wait(watchdog);
      while (sender.endpoint->has_unsent(sender.to_server) && !watchdog.passed())
        if (sender.endpoint->progress() == 0) sender.endpoint->wait(watchdog);
    });
    while (sorter.came[peer] < messages && !watchdog.passed())
      if (server->progress() == 0) server->wait(watchdog);
    sending.join();
  }
};

TEST_F(CrowdedQueue, ASenderWhoseTurnComesLastIsNotLockedOut) {
  std::vector<Sender> senders(5);
  for (auto &sender : senders) connect(sender);
  auto &last = senders.back();
  const auto of_last = [&] { return sorter.came[senders.size()]; };
  auto watchdog = nessie::Deadline::in(kWatchdog);
  while (of_last() < 500 && !watchdog.passed()) {
    server->progress();
    for (std::size_t i = 0; i + 1 < senders.size(); ++i) {  // they take all that they can get
      senders[i].endpoint->progress();
      while (senders[i].send()) {}
      senders[i].endpoint->progress();
    }
    last.endpoint->progress();
    last.send();
  }
  EXPECT_GE(of_last(), 500u);
  for (std::uint64_t peer = 1; peer < senders.size(); ++peer)
    EXPECT_LE(sorter.came[peer], 500u * 16) << "took more than the queue has, each time that the last one came";
}

TEST_F(CrowdedQueue, WhoSleepsForWantOfRoomIsWoken) {
  Sender sender;
  connect(sender);
  constexpr std::uint32_t kMessages = 2000;
  send_all(sender, kMessages, 1);
  EXPECT_EQ(sorter.came[1], kMessages);
}

/// It may want room before the reader has had a look at what it said of itself.
TEST_F(CrowdedQueue, WhoHasJustComeAndSleepsForWantOfRoomIsWoken) {
  constexpr std::uint32_t kMessages = 40;
  for (std::uint64_t peer = 1; peer <= 50; ++peer) {
    Sender sender;
    connect(sender);
    send_all(sender, kMessages, peer);
    ASSERT_EQ(sorter.came[peer], kMessages);
    server->disconnect(PeerId{peer});
  }
}

}  // namespace
}  // namespace nnti
