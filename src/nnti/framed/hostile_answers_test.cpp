// SPDX-License-Identifier: BSD-3-Clause
// A peer with the credential that answers nonsense: to what the server asks, and to what it never asked.
#include "nnti/framed/hostile_peer.hpp"

#include <algorithm>

namespace nnti::framed {
namespace {

struct AnsweringPeer : HostilePeer {};

TEST_P(AnsweringPeer, ThatAnswersWhatNobodyAskedIsGivenUp) {
  for (std::uint64_t operation : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}})
    for (std::uint32_t result : {0u, 3u, 0xffffffffu}) {
      auto done = frame_of(FrameType::kDone, operation);
      done.result = result;
      connect().send(done);
      expect_given_up();
    }
}

/// With a get or put of the server's under way, of memory that the peer said it has.
struct AskedByTheServer : HostilePeer {
  void ask(std::uint64_t length, bool get = true) {
    auto &peer = connect();
    ASSERT_TRUE(
        until([&] { return witness.connections.size() > 1 && (!peer.raw->knocks() || !peer.raw->frames.empty()); }));
    RemoteBuffer theirs;
    theirs.key = 5;
    theirs.size_bytes = std::max<std::uint64_t>(length, 16 << 20);
    theirs.rights = Rights::kReadWrite;
    local.assign(length, std::byte{0xaa});
    outcome = {};
    get ? witness.connections.back()->get(theirs, 0, local, outcome)
        : witness.connections.back()->put(theirs, 0, local, outcome);
    if (!get && length > kMaxInlineBytes) return;
    ASSERT_TRUE(until([&] { return asked_for() != 0; }));
  }
  std::uint64_t asked_for() const {
    for (const auto &bytes : hostile->raw->frames)
      if (const auto frame = decode_frame(bytes);
          frame && (frame->header.type == FrameType::kGet || frame->header.type == FrameType::kPut))
        return frame->header.operation;
    return 0;
  }
  ChunkHeader got_of(std::uint64_t length, std::uint64_t at = 0) {
    return {asked_for(), 0, 0, length, at, ChunkType::kGot, 0};
  }
  void expect_peer_given_up_and_nothing_received() {
    expect_given_up();
    ASSERT_EQ(outcome.times, 1);
    EXPECT_EQ(outcome.status.code(), Code::kPeerLost) << outcome.status.error().to_string();
    EXPECT_EQ(local, Bytes(local.size(), std::byte{0xaa}));
  }
  Bytes local;
  Outcome outcome;
};
struct AskedForChunks : AskedByTheServer {};

TEST_P(AskedByTheServer, GetsWhatItAskedFor) {
  ask(100);
  hostile->send(frame_of(FrameType::kDone, asked_for()), Bytes(100, std::byte{1}));
  ASSERT_TRUE(until([&] { return outcome.times == 1; }));
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(local, Bytes(100, std::byte{1}));
  EXPECT_TRUE(witness.losses.empty());
}

TEST_P(AskedForChunks, GetsWhatItAskedFor) {
  ask(kLong);
  hostile->send(got_of(kLong), Bytes(kLong, std::byte{2}));
  ASSERT_TRUE(until([&] { return outcome.times == 1; }));
  EXPECT_EQ(local, Bytes(kLong, std::byte{2}));
}

TEST_P(AskedByTheServer, TakesNoAnswerOfAnotherSize) {
  for (std::size_t size : {0, 99, 101, 4096}) {
    ask(100);
    hostile->send(frame_of(FrameType::kDone, asked_for()), Bytes(size));
    expect_peer_given_up_and_nothing_received();
  }
}

TEST_P(AskedForChunks, TakesNoChunksWhereAnAnswerIsDue) {
  ask(100);
  hostile->send(got_of(100), Bytes(100));
  expect_peer_given_up_and_nothing_received();
}

TEST_P(AskedForChunks, TakesNoAnswerWhereChunksAreDue) {
  ask(kLong);
  hostile->send(frame_of(FrameType::kDone, asked_for()), Bytes(100));
  expect_peer_given_up_and_nothing_received();
}

TEST_P(AskedForChunks, TakesNoMoreOrOtherThanItAskedFor) {
  const std::function<void()> wrong[] = {
      [&] { hostile->send(got_of(kLong - 1), Bytes(8192)); },
      [&] { hostile->send(got_of(2 * kLong), Bytes(8192)); },
      [&] { hostile->send(got_of(kLong, 8192), Bytes(8192)); },
      [&] { hostile->send(got_of(kLong, kLong), Bytes(1)); },
      [&] { hostile->send(got_of(8192), Bytes(kLong)); },
      [&] { hostile->send(got_of(2 * kMaxChunkBytes), Bytes(kMaxChunkBytes + 1)); },
  };
  for (const auto &send : wrong) {
    ask(kLong);
    send();
    expect_peer_given_up_and_nothing_received();
  }
}

TEST_P(AskedForChunks, TakesNoChunkThatItNeverAskedFor) {
  for (std::uint64_t operation : {std::uint64_t{0}, std::uint64_t{1000}}) {
    ask(kLong);
    auto header = got_of(kLong);
    header.operation = operation;
    hostile->send(header, Bytes(8192));
    expect_peer_given_up_and_nothing_received();
  }
}

TEST_P(AskedByTheServer, TakesNoSecondAnswer) {
  ask(100);
  const auto done = frame_of(FrameType::kDone, asked_for());
  hostile->send(done, Bytes(100, std::byte{1}));
  hostile->send(done, Bytes(100, std::byte{2}));
  expect_given_up();
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(local, Bytes(100, std::byte{1}));
}

/// With its completion the memory is the caller's again, although the frame still waits for credits.
TEST_P(AskedByTheServer, BorrowsNothingOfAPutThatWasAnsweredBeforeItLeft) {
  auto &peer = connect(0);
  ASSERT_TRUE(until([&] { return witness.connections.size() > 1; }));
  RemoteBuffer theirs;
  theirs.key = 5;
  theirs.size_bytes = 100;
  theirs.rights = Rights::kReadWrite;
  local.assign(100, std::byte{0xaa});
  witness.connections.back()->put(theirs, 0, local, outcome);
  peer.send(frame_of(FrameType::kDone, 1));
  ASSERT_TRUE(until([&] { return outcome.times == 1; }));
  local.assign(100, std::byte{0xbb});
  peer.send(frame_of(FrameType::kCredit, 0, Connection::kCredits));
  ASSERT_TRUE(until([&] { return asked_for() != 0; }));
  const auto put = decode_frame(peer.raw->frames.back());
  ASSERT_TRUE(put && put->header.type == FrameType::kPut);
  EXPECT_EQ(Bytes(put->body.begin(), put->body.end()), Bytes(100, std::byte{0xaa}));
}

TEST_P(AskedByTheServer, KeepsWhatAPeerAnsweredJustBeforeItsBye) {
  ask(100);
  hostile->send(frame_of(FrameType::kDone, asked_for()), Bytes(100, std::byte{1}));
  hostile->send(frame_of(FrameType::kBye));
  expect_lost(Loss::kGone, Code::kPeerLost);
  ASSERT_EQ(outcome.times, 1);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error().to_string();
  EXPECT_EQ(local, Bytes(100, std::byte{1}));
}

TEST_P(AskedForChunks, BelievesNoPutDoneThatWasNotSent) {
  ask(64 * kMaxChunkBytes, false);  // more than the kernel keeps for a socket and its peer
  hostile->raw->hold_chunks = true;
  hostile->send(frame_of(FrameType::kDone, 1));
  ASSERT_TRUE(until([&] { return outcome.times == 1; }));
  EXPECT_EQ(outcome.status.code(), Code::kPeerLost) << outcome.status.error().to_string();
  expect_given_up();
}

TEST_P(AskedForChunks, LosesAPeerThatIsCutOffInTheMiddle) {
  ask(2 * kLong);
  hostile->send(got_of(2 * kLong), Bytes(kLong, std::byte{1}));
  ASSERT_TRUE(until([&] { return local[0] == std::byte{1}; }));
  EXPECT_EQ(outcome.times, 0);
  hostile->socket.reset();
  expect_lost(Loss::kGone, Code::kPeerLost);
  ASSERT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.status.code(), Code::kPeerLost);
}

std::vector<HostileTransport> in_chunks() {
  auto some = hostile_transports();
  std::erase_if(some, [](const HostileTransport &transport) { return !transport.in_chunks; });
  return some;
}

INSTANTIATE_TEST_SUITE_P(All, AnsweringPeer, testing::ValuesIn(hostile_transports()),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(All, AskedByTheServer, testing::ValuesIn(hostile_transports()),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(All, AskedForChunks, testing::ValuesIn(in_chunks()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::framed
