// SPDX-License-Identifier: BSD-3-Clause
// A peer with the credential whose beginning is wrong, or whose stream is. framed/hostile_peer_test.cpp has the rest.
#include "nnti/transports/tcp/raw_peer_test.hpp"

namespace nnti::tcp {
namespace {

using framed::frame_of;
using framed::FrameType;

struct TcpPeer : framed::HostilePeer {
  /// Asks for a stream of that connection's.
  Code ask_for_stream(std::uint64_t token) { return converse(encode_hello(Hello::Kind::kStream, token)).code(); }
};

TEST_P(TcpPeer, WithAGreetingThatMakesNoSenseIsDeclined) {
  EXPECT_FALSE(shake_hands(greet(), encode_hello(Hello::Kind::kConnection, 0)).ok());
  EXPECT_FALSE(shake_hands(greet(), encode_hello(static_cast<Hello::Kind>(3), 1)).ok());
  EXPECT_FALSE(shake_hands(greet(), Bytes(3)).ok());
  expect_others_are_served();
}

TEST_P(TcpPeer, WhoAsksForTheStreamOfNobody_OrForASecondOne_IsDeclined) {
  EXPECT_NE(ask_for_stream(12345), Code::kOk);
  auto &peer = connect();
  EXPECT_NE(ask_for_stream(peer.raw->token), Code::kOk);
  expect_still_served(peer);
}

TEST_P(TcpPeer, ThatNeverAsksForItsStreamIsLostWithItsSocket) {
  auto established = converse(greet().raw->hello());
  ASSERT_TRUE(established.ok());
  ASSERT_TRUE(until([&] { return witness.connections.size() == 2; }));
  established->socket.take().reset();
  expect_lost(Loss::kGone, Code::kPeerLost);
}

TEST_P(TcpPeer, WhoseFrameHasAnothersTokenIsGivenUp) {
  auto &peer = connect();
  auto header = frame_of(FrameType::kMessage);
  header.token = peer.raw->token + 1;
  header.sequence = peer.sequence;
  peer.send_as_it_is(header);
  expect_given_up();
}

TEST_P(TcpPeer, WhosePiecesAreEmpty_OrTooLong_IsGivenUp) {
  for (const Prefix prefix : {Prefix{0, 0}, Prefix{kMaxFrameBytes + 1, 0}, Prefix{kMaxHeaderBytes + 1, 1},
                              Prefix{sizeof(framed::ChunkHeader), kMaxChunkBytes + 1}, Prefix{~0u, ~0u}}) {
    static_cast<RawTcp &>(*connect().raw).send(prefix, Bytes(64));
    expect_given_up();
  }
}

TEST_P(TcpPeer, ThatStopsInTheMiddleOfAGetDoesNotKeepTheMemory_AndMayGoOn) {
  auto &peer = connect();
  peer.raw->hold_chunks = true;
  peer.send(get_of(1, 0, framed::kMemoryBytes));
  ASSERT_TRUE(until([&] { return !peer.raw->chunks.empty(); }));
  registered.reset();  // returns
  peer.raw->hold_chunks = false;
  EXPECT_TRUE(until([&] { return peer.answer_to(1) == Code::kRefused; }));
  expect_still_served(peer);
}

INSTANTIATE_TEST_SUITE_P(Tcp, TcpPeer, testing::Values(hostile_transport()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::tcp
