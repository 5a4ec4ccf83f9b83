// SPDX-License-Identifier: BSD-3-Clause
// The decoders of frames and chunks take any bytes.
#include "nnti/framed/frame_testing.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

namespace {

using namespace nnti::framed;
using Bytes = std::vector<std::byte>;

FrameHeader header_of(FrameType type, std::uint64_t operation = 1) { return {.type = type, .operation = operation}; }

bool refused(const FrameHeader &header, std::size_t body) { return !decode_frame(frame_of(header, body)); }

ChunkHeader chunk_of(std::uint64_t at, std::uint64_t length, ChunkType type = ChunkType::kPut) {
  return {.length = length, .at = at, .type = type};
}

bool refused(const ChunkHeader &header, std::size_t payload) {
  return !decode_chunk(std::as_bytes(std::span(&header, 1)), payload);
}

TEST(FramedWire, FrameOfEachType_IsTakenWhole) {
  auto put = header_of(FrameType::kPut);
  put.length = 100;
  const std::pair<FrameHeader, std::size_t> frames[] = {{header_of(FrameType::kMessage), kMaxMessageBytes},
                                                        {header_of(FrameType::kMessage), 0},
                                                        {header_of(FrameType::kCredit), 0},
                                                        {header_of(FrameType::kGet), 0},
                                                        {put, put.length},
                                                        {header_of(FrameType::kDone), kMaxInlineBytes},
                                                        {header_of(FrameType::kBye), 0},
                                                        {header_of(FrameType::kProbe), 0},
                                                        {header_of(FrameType::kFirstOwn), 100}};
  for (const auto &[header, body] : frames) {
    const auto bytes = frame_of(header, body);
    const auto frame = decode_frame(bytes);
    ASSERT_TRUE(frame.has_value()) << static_cast<int>(header.type);
    EXPECT_EQ(frame->header.type, header.type);
    EXPECT_EQ(frame->body.size(), body);
    EXPECT_EQ(frame->body.data(), bytes.data() + sizeof header);
  }
}

TEST(FramedWire, BytesOfAFrame_AreWhereTheReadmeSays) {
  FrameHeader header{0x0102030405060708, FrameType::kDone, 0x1112, 0, 0x21222324, 0x31323334, 5, 6, 7, 8};
  const auto bytes = frame_of(header, 3);
  const std::uint8_t golden[sizeof header] = {
      8, 7, 6, 5, 4, 3, 2, 1, 5, 0, 0x12, 0x11, 3, 0, 0, 0, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31, 5,
      0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0,    0,    0, 0, 0, 7, 0,    0,    0,    0,    0,    0,    0,    8};
  EXPECT_EQ(std::memcmp(bytes.data(), golden, sizeof golden), 0);
}

TEST(FramedWire, FrameThatIsCutOff_IsRefused) {
  const auto bytes = frame_of(header_of(FrameType::kMessage), 10);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_frame(std::span(bytes).first(size)).has_value()) << size;
}

TEST(FramedWire, FrameWithMoreThanItSays_IsRefused) {
  auto bytes = frame_of(header_of(FrameType::kMessage), 10);
  bytes.push_back({});
  EXPECT_FALSE(decode_frame(bytes).has_value());
}

TEST(FramedWire, FrameOfAnUnknownType_IsRefused) {
  for (int type : {0, 8, 15}) EXPECT_TRUE(refused(header_of(static_cast<FrameType>(type)), 0)) << type;
}

TEST(FramedWire, FrameThatIsTooLongForItsType_IsRefused) {
  EXPECT_TRUE(refused(header_of(FrameType::kMessage), kMaxMessageBytes + 1));
  EXPECT_TRUE(refused(header_of(FrameType::kDone), kMaxInlineBytes + 1));
  for (auto type : {FrameType::kCredit, FrameType::kGet, FrameType::kBye, FrameType::kProbe})
    EXPECT_TRUE(refused(header_of(type), 1)) << static_cast<int>(type);
}

TEST(FramedWire, MessageOfAnUnknownKind_IsRefused) {
  EXPECT_FALSE(refused(header_of(FrameType::kMessage, nnti::kMaxMessageKind), 1));
  EXPECT_TRUE(refused(header_of(FrameType::kMessage, nnti::kMaxMessageKind + 1), 1));
  EXPECT_TRUE(refused(header_of(FrameType::kMessage, std::uint64_t{1} << 32), 1));
}

TEST(FramedWire, PutWhoseLengthIsNotItsSize_IsRefused) {
  auto put = header_of(FrameType::kPut);
  for (std::uint64_t length : {std::uint64_t{7}, std::uint64_t{9}, std::uint64_t{kMaxInlineBytes}}) {
    put.length = length;
    EXPECT_TRUE(refused(put, 8)) << length;
  }
  put.length = kMaxInlineBytes + 1;
  EXPECT_TRUE(refused(put, kMaxInlineBytes + 1)) << "that goes in another way";
}

TEST(FramedWire, LongGetOrPut_HasAtMostAHint) {
  for (auto type : {FrameType::kGet, FrameType::kPut}) {
    auto request = header_of(type);
    request.length = kMaxInlineBytes + 1;
    EXPECT_FALSE(refused(request, 0));
    EXPECT_FALSE(refused(request, kMaxHintBytes));
    EXPECT_TRUE(refused(request, kMaxHintBytes + 1));
  }
}

TEST(FramedWire, OwnFrameOfATransport_IsNotLongerThanAnyOther) {
  EXPECT_TRUE(refused(header_of(FrameType::kFirstOwn), kMaxInlineBytes + 1));
}

TEST(FramedWire, ChunkWithinItsOperation_IsTaken) {
  EXPECT_FALSE(refused(chunk_of(0, 1), 1));
  EXPECT_FALSE(refused(chunk_of(4096, 8192, ChunkType::kGot), 4096));
  EXPECT_FALSE(refused(chunk_of(~std::uint64_t{0} - 1, ~std::uint64_t{0}), 1));
  EXPECT_FALSE(refused(chunk_of(0, kMaxChunkBytes), kMaxChunkBytes));
}

TEST(FramedWire, ChunkBeyondItsOperation_IsRefused) {
  EXPECT_TRUE(refused(chunk_of(0, 1), 2));
  EXPECT_TRUE(refused(chunk_of(2, 1), 1));
  EXPECT_TRUE(refused(chunk_of(1, 1), 1));
  EXPECT_TRUE(refused(chunk_of(~std::uint64_t{0}, 4096), 4096)) << "no sum may overflow";
}

TEST(FramedWire, ChunkOfAWrongSizeOrType_IsRefused) {
  EXPECT_TRUE(refused(chunk_of(0, 1 << 20), 0));
  EXPECT_TRUE(refused(chunk_of(0, 1 << 30), kMaxChunkBytes + 1));
  for (std::uint32_t type : {0u, 3u, ~0u})
    EXPECT_TRUE(refused(chunk_of(0, 1, static_cast<ChunkType>(type)), 1)) << type;
  const auto header = chunk_of(0, 1);
  const auto bytes = std::as_bytes(std::span(&header, 1));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_chunk(bytes.first(size), 1).has_value()) << size;
  Bytes longer(bytes.begin(), bytes.end());
  longer.push_back({});
  EXPECT_FALSE(decode_chunk(longer, 1).has_value());
}

}  // namespace
