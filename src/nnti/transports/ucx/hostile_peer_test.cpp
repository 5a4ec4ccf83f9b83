// SPDX-License-Identifier: BSD-3-Clause
// A peer with the credential that speaks nonsense: in its greeting, its frames, about our memory, on its socket.
#include "nnti/transports/ucx/hostile_peer.hpp"

namespace nnti::ucx {
namespace {

TEST_F(HostileUcxPeer, ThatBehavesIsServed) {
  auto &peer = connect();
  expect_still_served(peer);
  peer.send(get_of(1, 0, kLong));
  EXPECT_TRUE(until([&] { return !peer.ucx.chunks.empty() && peer.ucx.chunks.back().length == kLong; }));
  const Bytes bytes(memory.begin(), memory.begin() + kLong);
  peer.send(put_of(2, 0, kLong), bytes);
  EXPECT_TRUE(until([&] { return peer.answer_to(2) == Code::kOk; }));
  EXPECT_TRUE(witness.losses.empty());
}

// --- greetings -----------------------------------------------------------------------------------------------------------

TEST_F(HostileUcxPeer, WithAGreetingThatMakesNoSenseIsDeclined) {
  EXPECT_FALSE(shake_hands(greet([](Hello &hello) { hello.token = 0; })).ok());
  EXPECT_FALSE(shake_hands(greet([](Hello &hello) { hello.address.clear(); })).ok());
  EXPECT_FALSE(shake_hands(greet([](Hello &hello) { hello.address.resize(kMaxAddressBytes + 1); })).ok());
  expect_others_are_served();
}

TEST_F(HostileUcxPeer, ThatSpeaksBeforeItKnocksIsGivenUp) {
  auto &peer = greet();
  ASSERT_TRUE(shake_hands(peer).ok());
  peer.send(frame_of(FrameType::kMessage));
  expect_given_up();
  EXPECT_EQ(witness.messages, 1) << "the bystander's";
}

TEST_F(HostileUcxPeer, ThatKnocksWithCreditsInItsHandIsGivenUp) {
  auto &peer = greet();
  ASSERT_TRUE(shake_hands(peer).ok());
  peer.send(frame_of(FrameType::kCredit, 0, kCredits));
  expect_given_up();
}

TEST_F(HostileUcxPeer, ThatNeverKnocksIsLostWithItsSocket) {
  auto &peer = greet();
  ASSERT_TRUE(shake_hands(peer).ok());
  ASSERT_TRUE(until([&] { return witness.connections.size() == 2; }));
  peer.socket.reset();
  expect_lost(Loss::kGone, Code::kPeerLost);
}

TEST_F(HostileUcxPeer, WhoKnowsTheAddressAndNoTokenIsNotHeard) {
  auto &peer = connect();
  const auto before = witness.messages;
  auto header = frame_of(FrameType::kMessage);
  for (header.token = 0; header.token < 100; ++header.token) peer.send_as_it_is(header);
  auto chunk = put_of(1, 0, 8192);
  chunk.token = peer.theirs.token + 1;
  peer.ucx.send(kChunks, raw(chunk), Bytes(8192));
  peer.ucx.send(7, {}, Bytes(100));
  peer.ucx.send(kFrames, raw(header), Bytes(100));
  expect_still_served(peer);
  EXPECT_EQ(witness.messages, before + 1);
  EXPECT_EQ(memory, pattern(kMemoryBytes, 1));
}

// --- frames --------------------------------------------------------------------------------------------------------------

TEST_F(HostileUcxPeer, ThatSendsWhatIsNoFrameIsGivenUp) {
  const std::function<void(Hostile &)> nonsense[] = {
      [](Hostile &peer) { peer.send(frame_of(static_cast<FrameType>(7))); },
      [](Hostile &peer) { peer.send(frame_of(static_cast<FrameType>(0))); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kMessage, kMaxMessageKind + 1), Bytes(8)); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kMessage), Bytes(kMaxMessageBytes + 1)); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kMessage), Bytes(1 << 20)); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kGet), Bytes(8)); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kPut), Bytes(8)); },
      [](Hostile &peer) { peer.send(frame_of(FrameType::kBye), Bytes(8)); },
      [](Hostile &peer) {
        auto lie = frame_of(FrameType::kMessage);
        lie.token = peer.theirs.token;
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

TEST_F(HostileUcxPeer, WhoseFramesHaveAGapIsGivenUp) {
  auto &peer = connect();
  ++peer.sequence;
  peer.send(frame_of(FrameType::kMessage));
  expect_given_up();
}

TEST_F(HostileUcxPeer, ThatRepeatsAFrameIsGivenUp) {
  auto &peer = connect();
  --peer.sequence;
  peer.send(frame_of(FrameType::kMessage));
  expect_given_up();
}

TEST_F(HostileUcxPeer, ThatBreaksTheProtocolIsNotListenedToAnyMore) {
  auto &peer = connect();
  peer.send(frame_of(FrameType::kDone, 9));
  peer.send(frame_of(FrameType::kMessage));
  peer.send(put_of(1, 0, kLong), Bytes(kLong));
  auto put = frame_of(FrameType::kPut, 2);
  put.key = registered->describe().key;
  put.length = 8;
  peer.send(put, Bytes(8));
  expect_given_up();
  EXPECT_EQ(witness.messages, 1) << "the bystander's";
}

TEST_F(HostileUcxPeer, ThatSendsWithoutCreditsIsGivenUp) {
  auto &peer = connect();
  for (std::uint32_t i = 0; i < 4 * kCredits; ++i) peer.send(frame_of(FrameType::kMessage));
  for (int i = 0; i < 10'000; ++i) peer.ucx.progress();  // all of it is there before the server looks
  expect_given_up();
}

TEST_F(HostileUcxPeer, ThatGivesMoreCreditsThanThereAreIsGivenUp) {
  connect().send(frame_of(FrameType::kCredit, 0, 1));
  expect_given_up();
  connect(0).send(frame_of(FrameType::kCredit, 0, 0xffff));
  expect_given_up();
}

TEST_F(HostileUcxPeer, ThatTakesNoAnswersIsGivenUp) {
  auto &peer = connect(0);
  std::uint64_t asked = 0;
  const auto credits = [&] {
    std::uint64_t given = kCredits;
    for (const auto &bytes : peer.ucx.frames)
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

TEST_F(HostileUcxPeer, WithAForgedKeyIsRefused) {
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
  auto chunk = put_of(3, 0, kLong);
  chunk.key ^= 1;
  peer.send(chunk, Bytes(kLong));
  EXPECT_TRUE(until([&] { return peer.answer_to(3) == Code::kRefused; }));
  expect_still_served(peer);
  EXPECT_EQ(memory, pattern(kMemoryBytes, 1));
}

TEST_F(HostileUcxPeer, WithoutTheRightIsRefused) {
  auto &peer = connect();
  auto chunk = put_of(1, 0, 8192);
  chunk.key = only_read->describe().key;
  peer.send(chunk, Bytes(8192));
  EXPECT_TRUE(until([&] { return peer.answer_to(1) == Code::kRefused; }));
  expect_still_served(peer);
  EXPECT_EQ(small, pattern(8192, 2));
}

TEST_F(HostileUcxPeer, ThatReachesBeyondABufferIsTold) {
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
    if (length < 8192) continue;
    peer.send(put_of(operation, offset, length), Bytes(8192));
    EXPECT_TRUE(until([&] { return peer.answer_to(operation) == Code::kOutOfRange; })) << offset << ", " << length;
    ++operation;
  }
  expect_still_served(peer);
  EXPECT_EQ(memory, pattern(kMemoryBytes, 1));
}

TEST_F(HostileUcxPeer, WhoseChunkIsNoneIsGivenUp) {
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

TEST_F(HostileUcxPeer, WhoseChunksOverlapOrLeaveAGapIsGivenUp) {
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

TEST_F(HostileUcxPeer, ThatPutsTwiceUnderOneNameIsGivenUp) {
  auto &peer = connect();
  const Bytes same(memory.begin(), memory.begin() + 8192);
  peer.send(put_of(1, 0, 8192), same);
  peer.send(put_of(1, 0, 8192), Bytes(8192));
  expect_given_up();
}

TEST_F(HostileUcxPeer, ThatGetsTwiceUnderOneNameIsGivenUp) {
  auto &peer = connect();
  peer.ucx.hold_chunks = true;
  peer.send(get_of(1, 0, kMemoryBytes));
  peer.send(get_of(1, 0, kMemoryBytes));
  expect_given_up();
}

TEST_F(HostileUcxPeer, ThatPutsUnderTheNameOfAGetIsGivenUp) {
  auto writable = pattern(8192, 3);
  auto narrow = std::move(*server->register_memory({writable, Rights::kReadWrite, -1}));
  auto &peer = connect();
  peer.ucx.hold_chunks = true;
  peer.send(get_of(1, 0, kMemoryBytes));
  ASSERT_TRUE(until([&] { return !peer.ucx.chunks.empty(); }));
  auto put = put_of(1, 0, 8192);
  put.key = narrow->describe().key;
  peer.send(put, Bytes(8192));
  expect_given_up();
  EXPECT_EQ(writable, pattern(8192, 3));
}

TEST_F(HostileUcxPeer, ThatAsksForTooMuchAtOnceIsGivenUp) {
  auto &peer = connect();
  peer.ucx.hold_chunks = true;
  std::uint64_t asked = 0, given = kCredits;
  std::size_t seen = 0;
  ASSERT_TRUE(until([&] {
    for (; seen < peer.ucx.frames.size(); ++seen)
      if (const auto frame = decode_frame(peer.ucx.frames[seen])) given += frame->header.credits;
    for (; asked < given; ++asked) peer.send(get_of(asked + 1, 0, kLong));
    return !witness.losses.empty();
  }));
  EXPECT_GT(asked, 4096u);
  expect_given_up();
}

TEST_F(HostileUcxPeer, ThatLeavesInTheMiddleOfAPutLeavesTheRestAsItWas) {
  auto &peer = connect();
  const Bytes same(memory.begin(), memory.begin() + 8192);
  peer.send(put_of(1, 0, kLong), same);
  expect_still_served(peer);
  peer.socket.reset();
  expect_lost(Loss::kGone, Code::kPeerLost);
}

TEST_F(HostileUcxPeer, ThatStopsInTheMiddleOfAGetDoesNotKeepTheMemory) {
  auto &peer = connect();
  peer.ucx.hold_chunks = true;
  peer.send(get_of(1, 0, kMemoryBytes));
  ASSERT_TRUE(until([&] { return !peer.ucx.chunks.empty(); }));
  registered.reset();  // returns
  ASSERT_TRUE(until([&] { return witness.losses.size() == 1; }));
  EXPECT_EQ(witness.losses[0].loss, Loss::kBroken) << "it may come back";
  EXPECT_NE(how_the_socket_ends(peer), 0) << "or the peer would think that the server's process ended";
  registered = std::move(*server->register_memory({memory, Rights::kReadWrite, -1}));
  expect_others_are_served();
}

// --- the socket ---------------------------------------------------------------------------------------------------------------

TEST_F(HostileUcxPeer, ThatSpeaksOnItsSocketIsGivenUp) {
  auto &peer = connect();
  peer.socket->send(bootstrap::PageType::kTransport, Bytes(16));
  expect_given_up();
}

TEST_F(HostileUcxPeer, WhoseSocketBreaksIsLostForNow) {
  auto &peer = connect();
  const linger at_once{1, 0};
  ::setsockopt(peer.socket->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  peer.socket.reset();
  expect_lost(Loss::kBroken, Code::kPeerLost);
}

TEST_F(HostileUcxPeer, WhoseLinkIsAbortedIsToldThatItBroke) {
  auto &peer = connect();
  ASSERT_TRUE(until([&] { return witness.connections.size() == 2; }));
  witness.connections.back()->abort();
  EXPECT_NE(how_the_socket_ends(peer), 0);
  EXPECT_TRUE(witness.losses.empty()) << "who aborts is not told";
  expect_others_are_served();
}

TEST_F(HostileUcxPeer, WhoseConnectionIsClosedIsToldThatItEnded) {
  auto &peer = connect();
  ASSERT_TRUE(until([&] { return witness.connections.size() == 2; }));
  witness.connections.back()->close();
  EXPECT_EQ(how_the_socket_ends(peer), 0);
  expect_others_are_served();
}

TEST_F(HostileUcxPeer, ThatSaysByeIsGone) {
  connect().send(frame_of(FrameType::kBye));
  expect_lost(Loss::kGone, Code::kPeerLost);
}

}  // namespace
}  // namespace nnti::ucx
