// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/conformance/conformance.hpp"

#include <cstring>

namespace nnti::conformance {
namespace {

constexpr std::uint32_t kManyMessages = kSanitized ? 20'000 : 100'000;

class Messages : public Conformance {};

/// A message of varying size that carries its number.
Bytes numbered(std::uint32_t number) {
  Bytes message = pattern(sizeof number + number % 300, number);
  std::memcpy(message.data(), &number, sizeof number);
  return message;
}

Status send_patiently(Node &node, PeerId to, std::span<const std::byte> message) {
  auto watchdog = Deadline::in(kWatchdog);
  for (;;) {
    auto sent = node.endpoint->send(to, message);
    if (sent.code() != Code::kBusy || watchdog.passed()) return sent;
    if (node.endpoint->progress() == 0) node.endpoint->wait(watchdog);
  }
}

/// Not by yielding, or sleeping: that takes the longer, the more others want the core.
void dawdle() {
  for (const auto end = nessie::Clock::now() + 1us; nessie::Clock::now() < end;) continue;
}

TEST_P(Messages, ArriveWhole) {
  Pair pair(subject());
  for (std::size_t size : {0u, 1u, 7u, 8u, 55u, 56u, 57u, 64u, 1000u, 4096u})
    ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, pattern(size)).ok());
  ASSERT_TRUE(pair.drive_until([&] { return pair.server.seen.messages.size() == 10; }));
  EXPECT_EQ(pair.server.seen.messages[0], Bytes());
  EXPECT_EQ(pair.server.seen.messages[5], pattern(56));
  EXPECT_EQ(pair.server.seen.messages[9], pattern(4096));
}

TEST_P(Messages, TheLargestArrivesAndALargerOneIsInvalid) {
  Pair pair(subject());
  auto limit = pair.client.endpoint->max_message_bytes(pair.to_server);
  ASSERT_GE(limit, 4096u);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, pattern(limit)).ok());
  EXPECT_EQ(pair.client.endpoint->send(pair.to_server, pattern(limit + 1)).code(), Code::kInvalidArgument);
  ASSERT_TRUE(pair.drive_until([&] { return pair.server.seen.messages.size() == 20; }));
  EXPECT_EQ(pair.server.seen.messages[19], pattern(limit));
}

TEST_P(Messages, ArriveInOrderExactlyOnceAtASlowReceiver) {
  const std::uint32_t many = subject().lossy() ? kManyMessages / 50 : kManyMessages;  // each loss costs it a turn
  Pair pair(subject());
  std::uint32_t expected = 0;
  bool all_good = true;
  pair.server.seen.message_hook = [&](PeerId, std::span<const std::byte> message) {
    auto wanted = numbered(expected++);
    all_good &= std::ranges::equal(message, wanted);
  };
  std::thread receiver([&] {
    auto watchdog = Deadline::in(kWatchdog);
    for (std::uint32_t turn = 0; expected < many && !watchdog.passed(); ++turn) {
      if (turn % 64 != 0)
        dawdle();  // slow: takes a look now and then only
      else if (pair.server.endpoint->progress() == 0)
        pair.server.endpoint->wait(Deadline::in(10ms));
    }
  });
  for (std::uint32_t i = 0; i < many; ++i) {
    auto sent = send_patiently(pair.client, pair.to_server, numbered(i));
    EXPECT_TRUE(sent.ok());
    if (!sent.ok()) break;
  }
  // What is queued at the sender is sent from its progress().
  auto watchdog = Deadline::in(kWatchdog);
  std::atomic<bool> received{false};
  std::thread waiter([&] {
    receiver.join();
    received.store(true);
    pair.client.endpoint->wake();
  });
  while (!received.load() && !watchdog.passed())
    if (pair.client.endpoint->progress() == 0) pair.client.endpoint->wait(Deadline::in(10ms));
  waiter.join();
  EXPECT_EQ(expected, many);
  EXPECT_TRUE(all_good);
}

TEST_P(Messages, AReceiverThatDoesNothingIsNotOverrun) {
  Pair pair(subject(), {{"nnti.send_queue", "100"}});
  std::uint32_t sent = 0;
  while (sent < 1'000'000) {
    auto status = pair.client.endpoint->send(pair.to_server, numbered(sent));
    if (!status.ok()) {
      EXPECT_EQ(status.code(), Code::kBusy);
      break;
    }
    ++sent;
  }
  ASSERT_LT(sent, 1'000'000u) << "the transport takes messages without end";
  ASSERT_TRUE(pair.drive_until([&] { return pair.server.seen.messages.size() == sent; }));
  EXPECT_EQ(pair.server.seen.messages.back(), numbered(sent - 1));
}

TEST_P(Messages, ThatWaitForCreditsAreKnownUntilTheyAreSent) {
  Pair pair(subject(), {{"nnti.send_queue", "100"}});
  std::uint32_t sent = 0;
  EXPECT_FALSE(pair.client.endpoint->has_unsent(pair.to_server));
  while (sent < 1'000'000 && !pair.client.endpoint->has_unsent(pair.to_server)) {
    ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, numbered(sent)).ok());
    ++sent;
  }
  ASSERT_LT(sent, 1'000'000u) << "the transport takes messages without end";
  ASSERT_TRUE(pair.drive_until([&] { return !pair.client.endpoint->has_unsent(pair.to_server); }));
  ASSERT_TRUE(pair.drive_until([&] { return pair.server.seen.messages.size() == sent; }));
  EXPECT_EQ(pair.server.seen.messages.back(), numbered(sent - 1));
  EXPECT_FALSE(pair.client.endpoint->has_unsent(pair.to_server));
}

TEST_P(Messages, FlowBothWaysAtOnce) {
  Pair pair(subject());
  for (std::uint32_t i = 0; i < 3000; ++i) {
    ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, numbered(i)).ok());
    ASSERT_TRUE(pair.server.endpoint->send(pair.to_client, numbered(i + 1)).ok());
  }
  ASSERT_TRUE(pair.drive_until(
      [&] { return pair.server.seen.messages.size() == 3000 && pair.client.seen.messages.size() == 3000; }));
  EXPECT_EQ(pair.server.seen.messages[2999], numbered(2999));
  EXPECT_EQ(pair.client.seen.messages[2999], numbered(3000));
}

TEST_P(Messages, MayBeSentAndProgressMadeWithinACallback) {
  Pair pair(subject());
  std::vector<std::uint32_t> order;
  int depth = 0;
  pair.server.seen.message_hook = [&](PeerId from, std::span<const std::byte> message) {
    std::uint32_t number = 0;
    std::memcpy(&number, message.data(), sizeof number);
    order.push_back(number);
    EXPECT_TRUE(pair.server.endpoint->send(from, message).ok());
    if (++depth < 10) pair.server.endpoint->progress();
    --depth;
    EXPECT_TRUE(std::ranges::equal(message, numbered(number))) << "a borrowed message changed";
  };
  for (std::uint32_t i = 0; i < 500; ++i) ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, numbered(i)).ok());
  ASSERT_TRUE(pair.drive_until([&] { return pair.client.seen.messages.size() == 500; }));
  for (std::uint32_t i = 0; i < 500; ++i) ASSERT_EQ(order[i], i);
}

TEST_P(Messages, ToAPeerThatIsGoneAreRefused) {
  Pair pair(subject());
  pair.client.endpoint->disconnect(pair.to_server);
  EXPECT_EQ(pair.client.endpoint->send(pair.to_server, bytes_of("x")).code(), Code::kPeerLost);
  EXPECT_EQ(pair.client.endpoint->send(PeerId{}, bytes_of("x")).code(), Code::kPeerLost);
  EXPECT_EQ(pair.client.endpoint->send(PeerId{12345}, bytes_of("x")).code(), Code::kPeerLost);
}

INSTANTIATE_TEST_SUITE_P(Over, Messages, testing::ValuesIn(subjects()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::conformance
