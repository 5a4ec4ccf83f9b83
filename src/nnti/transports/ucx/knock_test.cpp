// SPDX-License-Identifier: BSD-3-Clause
// A peer with the credential whose beginning is wrong, or who has no token. framed/hostile_peer_test.cpp has the rest.
#include "nnti/transports/ucx/raw_peer_test.hpp"

namespace nnti::ucx {
namespace {

using framed::frame_of;
using framed::FrameType;
struct UcxPeer : framed::HostilePeer {};

TEST_P(UcxPeer, WithAGreetingThatMakesNoSenseIsDeclined) {
  const auto address = decode_hello(greet().raw->hello())->address;
  EXPECT_FALSE(shake_hands(greet(), encode_hello({0, address})).ok());
  EXPECT_FALSE(shake_hands(greet(), encode_hello({1, {}})).ok());
  EXPECT_FALSE(shake_hands(greet(), encode_hello({1, Bytes(kMaxAddressBytes + 1)})).ok());
  expect_others_are_served();
}

TEST_P(UcxPeer, ThatSpeaksBeforeItKnocksIsGivenUp) {
  auto &peer = greet();
  ASSERT_TRUE(shake_hands(peer).ok());
  peer.send(frame_of(FrameType::kMessage));
  expect_given_up();
  EXPECT_EQ(witness.messages, 1) << "the bystander's";
}

TEST_P(UcxPeer, ThatKnocksWithCreditsInItsHandIsGivenUp) {
  auto &peer = greet();
  ASSERT_TRUE(shake_hands(peer).ok());
  peer.send(frame_of(FrameType::kCredit, 0, framed::Connection::kCredits));
  expect_given_up();
}

TEST_P(UcxPeer, ThatNeverKnocksIsLostWithItsSocket) {
  auto &peer = greet();
  ASSERT_TRUE(shake_hands(peer).ok());
  ASSERT_TRUE(until([&] { return witness.connections.size() == 2; }));
  peer.socket.reset();
  expect_lost(Loss::kGone, Code::kPeerLost);
}

TEST_P(UcxPeer, WhoKnowsTheAddressAndNoTokenIsNotHeard) {
  auto &peer = connect();
  const auto before = witness.messages;
  auto header = frame_of(FrameType::kMessage);
  for (header.token = 0; header.token < 100; ++header.token) peer.send_as_it_is(header);
  auto &ucx = static_cast<RawUcx &>(*peer.raw);
  const Chunk chunk{ucx.token + 1, put_of(1, 0, 8192)};
  ucx.send(kChunks, framed::raw(chunk), Bytes(8192));
  ucx.send(7, {}, Bytes(100));
  ucx.send(kFrames, framed::raw(header), Bytes(100));
  expect_still_served(peer);
  EXPECT_EQ(witness.messages, before + 1);
  EXPECT_TRUE(memory == untouched);
}

INSTANTIATE_TEST_SUITE_P(Ucx, UcxPeer, testing::Values(hostile_transport()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::ucx
