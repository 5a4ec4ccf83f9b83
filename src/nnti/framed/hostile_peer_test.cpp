// SPDX-License-Identifier: BSD-3-Clause
// A peer with the credential that speaks nonsense: in its greeting, its frames, about our memory, on its socket.
#include "nnti/framed/hostile_peer.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace nnti::framed {
namespace {

std::vector<HostileTransport> those(bool HostileTransport::*which) {
  auto some = hostile_transports();
  std::erase_if(some, [&](const HostileTransport &transport) { return !(transport.*which); });
  return some;
}

TEST_P(HostilePeer, ThatBehavesIsServed) { expect_still_served(connect()); }

TEST_P(HostileChunks, ThatBehavesIsServed) {
  auto &peer = connect();
  peer.send(get_of(1, 0, kLong));
  EXPECT_TRUE(until([&] { return !peer.raw->chunks.empty() && peer.raw->chunks.back().length == kLong; }));
  const Bytes bytes(memory.begin(), memory.begin() + kLong);
  peer.send(put_of(2, 0, kLong), bytes);
  EXPECT_TRUE(until([&] { return peer.answer_to(2) == Code::kOk; }));
  EXPECT_TRUE(witness.losses.empty());
}

// --- frames --------------------------------------------------------------------------------------------------------------

TEST_P(HostilePeer, ThatSendsWhatIsNoFrameIsGivenUp) {
  const std::function<void(Hostile &)> nonsense[] = {
      [](Hostile &peer) { peer.send(frame_of(static_cast<FrameType>(8))); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kFirstOwn)); },
      [](Hostile &peer) { peer.send(frame_of(static_cast<FrameType>(0))); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kMessage, kMaxMessageKind + 1), Bytes(8)); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kGet), Bytes(8)); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kPut), Bytes(8)); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kBye), Bytes(8)); },
      [](Hostile &peer) {
        auto lie = frame_of(FrameType::kMessage);
        lie.token = peer.raw->token;
        lie.sequence = peer.sequence;
        lie.size = 100;
        peer.send_as_it_is(lie, Bytes(50));
      },
  };
  for (const auto &send : nonsense) {
    send(connect());
    expect_given_up();
  }
}

TEST_P(HostilePeer, ThatSendsAFrameThatIsTooLongIsGivenUp) {
  for (const std::size_t size : {kMaxMessageBytes + 1, std::size_t{1} << 20}) {
    auto &peer = connect();
    if (size > peer.raw->max_frame_bytes()) GTEST_SKIP() << "the network does not carry it";
    peer.send(frame_of(FrameType::kMessage), Bytes(size));
    expect_given_up();
  }
}

/// The child has the socket too, so that closing it here alone does not take it out of the transport's set.
TEST_P(HostilePeer, ThatWasLeftIsNotHeardAnyMore_ThoughAForkedChildHasItsSocket) {
  if (GetParam().name != "tcp") GTEST_SKIP() << "its library has descriptors of its own in the set";
  auto &peer = connect();
  ASSERT_TRUE(until([&] { return witness.connections.size() == 2; }));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  witness.connections.back()->close();
  peer.send(frame_of(FrameType::kBye));
  for (int i = 0; i < 100; ++i) turn();
  ::shutdown(peer.socket->fd(), SHUT_RDWR);  // the child has this end, too
  for (int i = 0; i < 100; ++i) turn();
  pollfd interest{server->wait_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&interest, 1, 0), 0) << "whoever sleeps on the transport is woken for ever";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_P(HostilePeer, BesideWhichAnHonestOneAsksForMoreThanCanLeaveAtOnce) {
  constexpr std::size_t kMany = 70'000;
  const Bytes word(8, std::byte{0x55});
  std::vector<Outcome> outcomes(kMany);
  for (auto &outcome : outcomes) to_server->put(registered->describe(), 0, word, outcome);
  ASSERT_TRUE(until([&] { return outcomes.back().times == 1; }));
  for (const auto &outcome : outcomes) ASSERT_TRUE(outcome.status.ok()) << outcome.status.error().to_string();
  EXPECT_TRUE(witness.losses.empty() && bystander_witness.losses.empty());
}

/// Of the peer, or of the network, where that may have lost a frame.
TEST_P(HostilePeer, WhoseFramesHaveAGap_OrComeTwice_IsGivenUp) {
  for (const std::uint32_t step : {1u, ~0u}) {
    auto &peer = connect();
    peer.sequence += step;
    peer.send(frame_of(FrameType::kMessage));
    if (peer.raw->may_lose_frames())
      expect_lost(Loss::kBroken, Code::kPeerLost);
    else
      expect_given_up();
  }
}

TEST_P(HostilePeer, ThatBreaksTheProtocolIsNotListenedToAnyMore) {
  auto &peer = connect();
  peer.send(frame_of(FrameType::kDone, 9));
  peer.send(frame_of(FrameType::kMessage));
  auto put = frame_of(FrameType::kPut, 2);
  put.key = registered->describe().key;
  put.length = 8;
  peer.send(put, Bytes(8));
  for (int i = 0; i < 100; ++i) turn();  // chunks need not wait for frames that came just before
  if (GetParam().in_chunks) peer.send(put_of(1, 0, kLong), Bytes(kLong));
  expect_given_up();
  EXPECT_EQ(witness.messages, 1) << "the bystander's";
}

TEST_P(HostilePeer, ThatSendsWithoutCreditsIsGivenUp) {
  auto &peer = connect();
  for (std::uint32_t i = 0; i < 4 * Connection::kCredits; ++i) peer.send(frame_of(FrameType::kMessage));
  for (int i = 0; i < 10'000; ++i) peer.raw->progress();  // all of it is there before the server looks
  expect_given_up();
}

TEST_P(HostilePeer, ThatGivesMoreCreditsThanThereAreIsGivenUp) {
  connect().send(frame_of(FrameType::kCredit, 0, 1));
  expect_given_up();
  connect(0).send(frame_of(FrameType::kCredit, 0, 0xffff));
  expect_given_up();
}

TEST_P(HostilePeer, ThatTakesNoAnswersIsGivenUp) {
  auto &peer = connect(0);
  std::uint64_t asked = 0;
  const auto credits = [&] {
    std::uint64_t given = Connection::kCredits;
    for (const auto &bytes : peer.raw->frames)
      if (const auto frame = decode_frame(bytes)) given += frame->header.credits;
    return given;
  };
  ASSERT_TRUE(until([&] {
    for (const auto given = credits(); asked < given; ++asked) peer.send(get_of(asked + 1, 0, 8));
    return !witness.losses.empty();
  }));
  expect_given_up();
}

// --- our memory -------------------------------------------------------------------------------------------------------------

TEST_P(HostilePeer, WithAForgedKeyIsRefused) {
  auto &peer = connect();
  auto get = get_of(1, 0, 8);
  get.key += 1;
  peer.send(get);
  EXPECT_TRUE(until([&] { return peer.answer_to(1) == Code::kRefused; }));
  auto put = frame_of(FrameType::kPut, 2);
  put.key = 0;
  put.length = 8;
  peer.send(put, Bytes(8));
  EXPECT_TRUE(until([&] { return peer.answer_to(2) == Code::kRefused; }));
  if (GetParam().in_chunks) {
    auto chunk = put_of(3, 0, kLong);
    chunk.key ^= 1;
    peer.send(chunk, Bytes(kLong));
    EXPECT_TRUE(until([&] { return peer.answer_to(3) == Code::kRefused; }));
  }
  expect_still_served(peer);
  EXPECT_TRUE(memory == untouched);
}

TEST_P(HostileChunks, WithoutTheRightIsRefused) {
  auto &peer = connect();
  auto chunk = put_of(1, 0, 8192);
  chunk.key = only_read->describe().key;
  peer.send(chunk, Bytes(8192));
  EXPECT_TRUE(until([&] { return peer.answer_to(1) == Code::kRefused; }));
  expect_still_served(peer);
  EXPECT_EQ(small, pattern(8192, 2));
}

TEST_P(HostilePeer, ThatReachesBeyondABufferIsTold) {
  auto &peer = connect();
  const std::uint64_t most = ~std::uint64_t{0};
  const std::pair<std::uint64_t, std::uint64_t> ranges[] = {
      {0, kMemoryBytes + 1}, {kMemoryBytes, 1},    {kMemoryBytes + 1, 0}, {most, 2}, {2, most},
      {most, most},          {kMemoryBytes - 4, 8}};
  std::uint64_t operation = 1;
  for (const auto &[offset, length] : ranges) {
    peer.send(get_of(operation, offset, length));
    EXPECT_TRUE(until([&] { return peer.answer_to(operation) == Code::kOutOfRange; })) << offset << ", " << length;
    ++operation;
    if (length < 8192 || !GetParam().in_chunks) continue;
    peer.send(put_of(operation, offset, length), Bytes(8192));
    EXPECT_TRUE(until([&] { return peer.answer_to(operation) == Code::kOutOfRange; })) << offset << ", " << length;
    ++operation;
  }
  expect_still_served(peer);
  EXPECT_TRUE(memory == untouched);
}

TEST_P(HostileChunks, WhoseChunkIsNoneIsGivenUp) {
  const std::function<void(Hostile &)> nonsense[] = {
      [&](Hostile &peer) { peer.send(put_of(1, 0, 100), Bytes(8192)); },
      [&](Hostile &peer) { peer.send(put_of(1, 0, 8192, 8192), Bytes(1)); },
      [&](Hostile &peer) { peer.send(put_of(1, 0, kMemoryBytes), Bytes()); },
      [&](Hostile &peer) {
        auto chunk = put_of(1, 0, 8192);
        chunk.type = static_cast<ChunkType>(3);
        peer.send(chunk, Bytes(8192));
      },
      [&](Hostile &peer) { peer.send(put_of(1, 0, 8192, 100), Bytes(100)); },  // begins in the middle
  };
  for (const auto &send : nonsense) {
    send(connect());
    expect_given_up();
  }
}

TEST_P(HostileChunks, WhoseChunksOverlapOrLeaveAGapIsGivenUp) {
  const Bytes same(memory.begin(), memory.begin() + 8192);
  for (std::uint64_t at : {4096u, 8193u, 16384u}) {
    auto &peer = connect();
    peer.send(put_of(1, 0, kLong), same);
    peer.send(put_of(1, 0, kLong, at), Bytes(8192));
    expect_given_up();
  }
  auto &peer = connect();
  peer.send(put_of(1, 0, kLong), same);
  peer.send(put_of(1, 0, 2 * kLong, 8192), Bytes(8192));
  expect_given_up();
}

TEST_P(HostileChunks, ThatPutsTwiceUnderOneNameIsGivenUp) {
  auto &peer = connect();
  const Bytes same(memory.begin(), memory.begin() + 8192);
  peer.send(put_of(1, 0, 8192), same);
  peer.send(put_of(1, 0, 8192), Bytes(8192));
  expect_given_up();
}

TEST_P(HostileChunks, ThatGetsTwiceUnderOneNameIsGivenUp) {
  auto &peer = connect();
  peer.raw->hold_chunks = true;
  peer.send(get_of(1, 0, kMemoryBytes));
  peer.send(get_of(1, 0, kMemoryBytes));
  expect_given_up();
}

TEST_P(HostileChunks, ThatPutsUnderTheNameOfAGetIsGivenUp) {
  auto writable = pattern(8192, 3);
  auto narrow = std::move(*server->register_memory({writable, Rights::kReadWrite, -1}));
  auto &peer = connect();
  peer.raw->hold_chunks = true;
  peer.send(get_of(1, 0, kMemoryBytes));
  ASSERT_TRUE(until([&] { return !peer.raw->chunks.empty(); }));
  auto put = put_of(1, 0, 8192);
  put.key = narrow->describe().key;
  peer.send(put, Bytes(8192));
  expect_given_up();
  EXPECT_EQ(writable, pattern(8192, 3));
}

TEST_P(HoldingPeer, ThatAsksForTooMuchAtOnceIsGivenUp) {
  auto &peer = connect();
  peer.raw->hold_chunks = true;
  std::uint64_t asked = 0, given = Connection::kCredits;
  std::size_t seen = 0;
  ASSERT_TRUE(until([&] {
    for (; seen < peer.raw->frames.size(); ++seen)
      if (const auto frame = decode_frame(peer.raw->frames[seen])) given += frame->header.credits;
    for (; asked < given; ++asked) peer.send(get_of(asked + 1, 0, kLong));
    return !witness.losses.empty();
  }));
  EXPECT_GT(asked, 4096u);
  expect_given_up();
}

TEST_P(HostileChunks, ThatLeavesInTheMiddleOfAPutLeavesTheRestAsItWas) {
  auto &peer = connect();
  const Bytes same(memory.begin(), memory.begin() + 8192);
  peer.send(put_of(1, 0, kLong), same);
  expect_still_served(peer);
  peer.socket.reset();
  expect_lost(Loss::kGone, Code::kPeerLost);
}

TEST_P(HoldingPeer, ThatStopsInTheMiddleOfAGetDoesNotKeepTheMemory) {
  auto &peer = connect();
  peer.raw->hold_chunks = true;
  peer.send(get_of(1, 0, kMemoryBytes));
  ASSERT_TRUE(until([&] { return !peer.raw->chunks.empty(); }));
  registered.reset();  // returns
  ASSERT_TRUE(until([&] { return witness.losses.size() == 1; }));
  EXPECT_EQ(witness.losses[0].loss, Loss::kBroken) << "it may come back";
  EXPECT_NE(how_the_socket_ends(peer), 0) << "or the peer would think that the server's process ended";
  registered = std::move(*server->register_memory({memory, Rights::kReadWrite, -1}));
  expect_others_are_served();
}

// --- the socket ---------------------------------------------------------------------------------------------------------------

TEST_P(HostilePeer, ThatSpeaksOnItsSocketIsGivenUp) {
  auto &peer = connect();
  peer.socket->send(bootstrap::PageType::kTransport, Bytes(16));
  expect_given_up();
}

TEST_P(HostilePeer, WhoseSocketBreaksIsLostForNow) {
  auto &peer = connect();
  const linger at_once{1, 0};
  ::setsockopt(peer.socket->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  peer.socket.reset();
  expect_lost(Loss::kBroken, Code::kPeerLost);
}

TEST_P(HostilePeer, WhoseLinkIsAbortedIsToldThatItBroke) {
  auto &peer = connect();
  ASSERT_TRUE(until([&] { return witness.connections.size() == 2; }));
  witness.connections.back()->abort();
  EXPECT_NE(how_the_socket_ends(peer), 0);
  EXPECT_TRUE(witness.losses.empty()) << "who aborts is not told";
  expect_others_are_served();
}

TEST_P(HostilePeer, WhoseConnectionIsClosedIsToldThatItEnded) {
  auto &peer = connect();
  ASSERT_TRUE(until([&] { return witness.connections.size() == 2; }));
  witness.connections.back()->close();
  EXPECT_EQ(how_the_socket_ends(peer), 0);
  expect_others_are_served();
}

TEST_P(HostilePeer, ThatSaysByeIsGone) {
  connect().send(frame_of(FrameType::kBye));
  expect_lost(Loss::kGone, Code::kPeerLost);
}

INSTANTIATE_TEST_SUITE_P(All, HostilePeer, testing::ValuesIn(hostile_transports()), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(All, HostileChunks, testing::ValuesIn(those(&HostileTransport::in_chunks)),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(All, HoldingPeer, testing::ValuesIn(those(&HostileTransport::holds_chunks)),
                         testing::PrintToStringParamName());
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HoldingPeer);

}  // namespace
}  // namespace nnti::framed
