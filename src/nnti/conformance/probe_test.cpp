// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/conformance/conformance.hpp"

#include "nnti/endpoint/probe.hpp"

#include <algorithm>

namespace nnti::conformance {
namespace {

class Probing : public Conformance {};

Status ping(Pair &pair, std::size_t size_bytes) {
  Outcome outcome;
  pair.client.endpoint->ping(pair.to_server, size_bytes, outcome);
  return pair.finish(outcome);
}

Result<RemoteBuffer> borrow(Pair &pair, ProbeMemory memory) {
  RemoteBuffer buffer;
  Outcome outcome;
  pair.client.endpoint->borrow_memory(pair.to_server, memory, buffer, outcome);
  if (const auto &status = pair.finish(outcome); !status.ok()) return status.error();
  return buffer;
}

TEST_P(Probing, AnEchoComesBackAndNoApplicationSeesIt) {
  Pair pair(subject());
  const auto largest = pair.client.endpoint->max_in_place_bytes(pair.to_server);
  for (std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{100}, largest})
    EXPECT_TRUE(ping(pair, size).ok()) << size;
  EXPECT_EQ(ping(pair, largest + 1).code(), Code::kInvalidArgument);
  EXPECT_TRUE(pair.server.seen.messages.empty());
  EXPECT_TRUE(pair.client.seen.messages.empty());
}

TEST_P(Probing, BorrowedMemoryKeepsWhatIsPutThere) {
  Pair pair(subject());
  for (auto kind : {ProbeMemory::kAllocated, ProbeMemory::kOwn}) {
    auto buffer = borrow(pair, kind);
    ASSERT_TRUE(buffer.ok()) << buffer.error().to_string();
    ASSERT_EQ(buffer->size_bytes, kProbeBytes);
    const auto written = pattern(kProbeBytes);
    Bytes read(kProbeBytes);
    ASSERT_TRUE(pair.put(*buffer, 0, written).ok());
    ASSERT_TRUE(pair.get(*buffer, 0, read).ok());
    EXPECT_EQ(read, written);
    EXPECT_EQ(pair.get(*buffer, 1, read).code(), Code::kOutOfRange);
  }
}

TEST_P(Probing, AskingTwiceLendsTheSameMemory) {
  Pair pair(subject());
  auto first = borrow(pair, ProbeMemory::kOwn), second = borrow(pair, ProbeMemory::kOwn);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->key, second->key);
}

TEST_P(Probing, ManyBorrowersAreRefusedUntilOneLeaves) {
  auto credential = nessie::Credential::generate();
  Node server(subject(), credential, true);
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<PeerId> peers;
  Driver driver(server);
  auto borrow_as = [&](std::size_t i) {
    RemoteBuffer buffer;
    Outcome outcome;
    nodes[i]->endpoint->borrow_memory(peers[i], ProbeMemory::kAllocated, buffer, outcome);
    EXPECT_TRUE(drive({nodes[i].get()}, [&] { return outcome.times != 0; }));
    return outcome.status.code();
  };
  for (std::size_t i = 0; i <= kMaxBorrowers; ++i) {
    nodes.push_back(std::make_unique<Node>(subject(), credential, false));
    auto peer = nodes[i]->endpoint->connect(server.endpoint->url(), Deadline::in(kWatchdog));
    ASSERT_TRUE(peer.ok()) << peer.error().to_string();
    peers.push_back(*peer);
    EXPECT_EQ(borrow_as(i), i < kMaxBorrowers ? Code::kOk : Code::kBusy) << i;
  }
  nodes[0]->endpoint->disconnect(peers[0]);
  auto watchdog = Deadline::in(kWatchdog);
  Code last = Code::kBusy;
  while (last == Code::kBusy && !watchdog.passed()) {
    nodes[0]->endpoint->progress();
    last = borrow_as(kMaxBorrowers);
  }
  EXPECT_EQ(last, Code::kOk);
}

TEST_P(Probing, EndsWithThePeer) {
  Pair pair(subject());
  Outcome cancelled, lost;
  RemoteBuffer buffer;
  pair.client.endpoint->ping(PeerId{99}, 8, lost);
  EXPECT_EQ(lost.status.code(), Code::kPeerLost);
  pair.client.endpoint->borrow_memory(pair.to_server, ProbeMemory::kOwn, buffer, cancelled);
  pair.client.endpoint->disconnect(pair.to_server);
  EXPECT_EQ(cancelled.times, 1);
  EXPECT_EQ(cancelled.status.code(), Code::kCancelled);
}

INSTANTIATE_TEST_SUITE_P(Over, Probing, testing::ValuesIn(subjects()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::conformance
