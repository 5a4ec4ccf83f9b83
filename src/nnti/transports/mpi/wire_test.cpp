// SPDX-License-Identifier: BSD-3-Clause
// The decoders of the mpi transport take any bytes.
#include "nnti/transports/mpi/wire.hpp"
#include "nnti/framed/frame_testing.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

using namespace nnti::mpi;
using nnti::framed::frame_of;
using Bytes = std::vector<std::byte>;

FrameHeader header_of(FrameType type, std::uint64_t length = 0, std::uint32_t tag = 0) {
  return {.type = type, .result = tag, .length = length};
}

TEST(MpiWire, Frame_IsTakenWhole) {
  const auto bytes = frame_of(header_of(FrameType::kMessage), 10);
  const auto frame = decode_frame(bytes);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->body.size(), 10u);
  EXPECT_TRUE(decode_frame(frame_of(header_of(FrameType::kBye), 0)).has_value());
  EXPECT_TRUE(decode_frame(frame_of(header_of(FrameType::kGet, 1 << 20, kFirstBulkTag), 0)).has_value());
}

TEST(MpiWire, FrameThatContradictsItself_IsRefused) {
  const auto refused = [](const FrameHeader &header, std::size_t body) {
    return !decode_frame(frame_of(header, body)).has_value();
  };
  EXPECT_TRUE(refused(header_of(static_cast<FrameType>(0)), 0));
  for (const int type : {8, 18, 31, 36}) EXPECT_TRUE(refused(header_of(static_cast<FrameType>(type)), 0)) << type;
  EXPECT_TRUE(refused(header_of(FrameType::kMessage), kMaxMessageBytes + 1));
  EXPECT_TRUE(refused(header_of(FrameType::kGet, 1 << 20), 0)) << "large, and no tag";
  EXPECT_TRUE(refused(header_of(FrameType::kGet, 1 << 20, kFirstBulkTag - 1), 0)) << "somebody's port";
  EXPECT_TRUE(refused(header_of(FrameType::kGet, 1 << 20, kFirstBulkTag + kBulkTags), 0));
  EXPECT_TRUE(refused(header_of(FrameType::kPut, 9), 8));
  EXPECT_TRUE(refused(header_of(kClear), 0));
  const auto bytes = frame_of(header_of(FrameType::kBye), 0);
  EXPECT_FALSE(decode_frame(std::span(bytes).first(sizeof(FrameHeader) - 1)).has_value());
}

TEST(MpiWire, TypesOfItsOwn_CostCreditsUntilTheHandshakes) {
  for (const auto type : {kClear, kStopped}) EXPECT_TRUE(nnti::framed::costs_credit(type));
  for (const auto type : {kChallenge, kProof, kWelcome, kRefusal, FrameType::kBye, FrameType::kCredit})
    EXPECT_FALSE(nnti::framed::costs_credit(type));
}

TEST(MpiWire, HelloThatNobodyCouldAnswer_MakesNoSense) {
  Hello hello;
  hello.token = 1;
  hello.reply_port = kFirstPort;
  EXPECT_TRUE(makes_sense(hello));
  for (int port : {kDoorTag, -1, kFirstPort + kPorts}) {
    auto forged = hello;
    forged.reply_port = port;
    EXPECT_FALSE(makes_sense(forged)) << port;
  }
  hello.token = 0;
  EXPECT_FALSE(makes_sense(hello));
}

}  // namespace
