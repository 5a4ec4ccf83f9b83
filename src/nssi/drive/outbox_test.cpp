// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <nssi/drive/outbox.hpp>
#include <nssi/testing/testing.hpp>

#include <string>
#include <utility>

namespace nssi::testing {
namespace {

using std::chrono::seconds;

constexpr PeerId kOne{1}, kOther{2};
Bytes message(char name) { return {std::byte(name)}; }

/// What goes out when `peers` take messages, up to so many together.
std::string sent(Outbox &outbox, std::vector<PeerId> peers, std::size_t most = 100) {
  std::string names;
  outbox.flush([&](PeerId peer) { return std::ranges::count(peers, peer) != 0; },
               [&](PeerId, std::span<const std::byte> message) {
                 if (names.size() == most) return false;
                 names += static_cast<char>(message.front());
                 return true;
               });
  return names;
}

TEST(Outbox, WhatWaitsForOnePeer_HoldsUpNoOther) {
  Outbox outbox;
  outbox.add(kOne, message('a'));
  outbox.add(kOther, message('x'));
  outbox.add(kOne, message('b'));
  EXPECT_EQ(sent(outbox, {kOther}), "x");
  EXPECT_FALSE(outbox.holds(kOther));
  EXPECT_TRUE(outbox.holds(kOne));
  EXPECT_EQ(sent(outbox, {kOne}, 1), "a");
  EXPECT_EQ(sent(outbox, {kOne}), "b");
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, PeerForWhomTooMuchWaits_IsNamedOnce) {
  Outbox outbox;
  const Bytes large(Outbox::kMostBytes / 2);
  outbox.add(kOne, large);
  outbox.add(kOther, message('x'));
  EXPECT_TRUE(outbox.take_overfull().empty());
  outbox.add(kOne, large);
  EXPECT_EQ(outbox.take_overfull(), std::vector<PeerId>{kOne});
  EXPECT_TRUE(outbox.take_overfull().empty());
  outbox.forget(kOne);
  EXPECT_EQ(sent(outbox, {kOne, kOther}), "x");
}

/// Connects, and lets answers lie that it does not wait for.
struct OutboxCaller {
  explicit OutboxCaller(const std::string &url) : runtime(open_runtime(options_for("shm", false))) {
    auto connected = runtime->connect(url, Deadline::in(seconds(20)));
    if (!connected.ok()) throw std::runtime_error(connected.error().to_string());
    peer = *connected;
  }
  std::unique_ptr<Runtime> runtime;
  PeerId peer;
};

TEST(NssiOutbox, CallerThatTakesNoAnswers_HoldsUpNobody) {
  if (!available("shm")) GTEST_SKIP() << "shm is not available here";
  auto options = options_for("shm", true);
  options.endpoint.config.set("nnti.send_queue", "4");
  ServiceThread server(std::move(options));
  const auto url = server.runtime->url();
  OutboxCaller sleeper(url), other(url);
  std::vector<Call> calls;
  for (int round = 1; round <= 5; ++round) {  // more answers than the mailbox and the queue take
    for (int i = 0; i < 50; ++i) calls.push_back(sleeper.runtime->call(at(sleeper.peer), kCount, Bytes()));
    ASSERT_TRUE(eventually([&] { return server.service->counted == round * 50; }));
  }
  CallOptions soon;
  soon.deadline = Deadline::in(seconds(10));
  EXPECT_TRUE(other.runtime->call(at(other.peer), kNoop, Bytes(), soon).wait().ok());
  for (auto &call : calls) ASSERT_TRUE(call.wait().ok());
  EXPECT_TRUE(sleeper.runtime->call(at(sleeper.peer), kNoop, Bytes()).wait().ok());
}

}  // namespace
}  // namespace nssi::testing
