// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/channel/wire.hpp"

#include "nnti/channel/window.hpp"

#include <gtest/gtest.h>

namespace nnti::channel {
namespace {

using namespace std::chrono_literals;

Buffer bytes(std::initializer_list<int> values) {
  Buffer result;
  for (int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

// --- the formats of README.md ---------------------------------------------------------------------------------------------

TEST(ChannelWire, HeaderHasItsGoldenBytes) {
  HeaderBytes header;
  encode_header({33, 0x010203040506, 0x0a0b0c0d0e0f}, header);
  EXPECT_TRUE(std::ranges::equal(header, bytes({33, 0, 1, 2, 3, 4, 5, 6, 0, 0, 10, 11, 12, 13, 14, 15})));
  auto decoded = decode_header(header);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->type, 33);
  EXPECT_EQ(decoded->number, 0x010203040506u);
  EXPECT_EQ(decoded->acknowledged, 0x0a0b0c0d0e0fu);
}

TEST(ChannelWire, HeaderThatIsShortOrHasOtherBitsIsNone) {
  HeaderBytes header;
  encode_header({0, 1, 2}, header);
  EXPECT_FALSE(decode_header(std::span(header).first(15)));
  for (std::size_t reserved : {1u, 8u, 9u}) {
    auto wrong = header;
    wrong[reserved] = std::byte{1};
    EXPECT_FALSE(decode_header(wrong)) << reserved;
  }
}

TEST(ChannelWire, OpeningHasItsGoldenBytes) {
  Opening opening{true, 0x01020304, {}, {0x400, 0x100000}};
  for (std::size_t i = 0; i < opening.session.size(); ++i) opening.session[i] = static_cast<std::byte>(0xa0 + i);
  const auto golden =
      bytes({0,    1,    0,    1,    1,    2,    3,    4,    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
             0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0,    0,    4,    0,    0,    0x10, 0,    0});
  EXPECT_EQ(encode_opening(opening), golden);
  auto decoded = decode_opening(golden);
  ASSERT_TRUE(decoded.ok()) << decoded.error().to_string();
  EXPECT_TRUE(decoded->resume);
  EXPECT_EQ(decoded->attempt, 0x01020304u);
  EXPECT_EQ(decoded->session, opening.session);
  EXPECT_EQ(decoded->limits.messages, 0x400u);
}

TEST(ChannelWire, AnswerHasItsGoldenBytes) {
  const auto golden = bytes({0, 1, 0, 0, 0, 0, 0, 7, 0, 0, 4, 0, 0, 0x10, 0, 0});
  EXPECT_EQ(encode_opened({7, {0x400, 0x100000}}), golden);
  auto decoded = decode_opened(golden);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->attempt, 7u);
  EXPECT_EQ(decoded->limits.bytes, 0x100000u);
}

TEST(ChannelWire, AnotherVersionIsUnsupportedAndGarbageIsABadMessage) {
  auto opening = encode_opening({false, 1, {}, {1, 1}});
  auto other = opening;
  other[1] = std::byte{2};
  EXPECT_EQ(decode_opening(other).code(), Code::kUnsupported);
  other = opening;
  other[3] = std::byte{2};  // a flag that is not known
  EXPECT_EQ(decode_opening(other).code(), Code::kBadMessage);
  other = opening;
  other[27] = std::byte{0};  // no message may be kept
  EXPECT_EQ(decode_opening(other).code(), Code::kBadMessage);
  for (std::size_t size = 0; size < opening.size(); ++size)
    EXPECT_EQ(decode_opening(std::span(opening).first(size)).code(), Code::kBadMessage) << size;
  const auto answer = encode_opened({1, {1, 1}});
  for (std::size_t size = 0; size < answer.size(); ++size)
    EXPECT_EQ(decode_opened(std::span(answer).first(size)).code(), Code::kBadMessage) << size;
}

// --- what is remembered -----------------------------------------------------------------------------------------------------

TEST(SendWindow, KeepsWhatIsNotAcknowledgedWithinItsLimits) {
  BufferPool pool;
  SendWindow window(pool);
  window.limit({100, 5000});
  for (int i = 0; i < 100 && window.has_room(40); ++i) window.push(Buffer(40, static_cast<std::byte>(i)));
  EXPECT_EQ(window.size(), 100u);
  EXPECT_FALSE(window.has_room(40));
  window.acknowledge(70);
  EXPECT_TRUE(window.has_room(40));
  for (std::uint64_t number = 70; number < 100; ++number)
    EXPECT_EQ(window[number].bytes, Buffer(40, static_cast<std::byte>(number)));
  EXPECT_FALSE(window.has_room(5000)) << "more bytes than it may keep";
  window.acknowledge(100);
  EXPECT_TRUE(window.has_room(6000)) << "one message is always taken";
}

TEST(EarlyMessages, AreBoundedAndToldInABitmap) {
  EarlyMessages early;
  const Limits limits{3, 1000};
  EXPECT_TRUE(early.add(11, 0, Buffer(10), limits));
  EXPECT_TRUE(early.add(11, 0, Buffer(10), limits)) << "again";
  EXPECT_TRUE(early.add(20, 0, Buffer(10), limits));
  EXPECT_EQ(early.bitmap(10), bytes({1, 2}));
  EXPECT_FALSE(early.add(12, 0, Buffer(1000), limits)) << "too many bytes";
  EXPECT_TRUE(early.add(12, 0, Buffer(10), limits));
  EXPECT_FALSE(early.add(13, 0, Buffer(10), limits)) << "too many";
  EXPECT_FALSE(early.take(10));
  EXPECT_TRUE(early.take(11));
  EXPECT_TRUE(early.add(13, 0, Buffer(10), limits));
  EXPECT_EQ(early.bitmap(11), bytes({3, 1}));
}

TEST(RoundTrip, WaitsLongerThanAcknowledgementsTakeAndBacksOff) {
  RoundTrip round_trip;
  EXPECT_EQ(round_trip.timeout(), 100ms);
  for (int i = 0; i < 50; ++i) round_trip.sample(20ms);
  EXPECT_GE(round_trip.timeout(), 20ms);
  EXPECT_LT(round_trip.timeout(), 40ms);
  const auto before = round_trip.timeout();
  round_trip.back_off();
  EXPECT_EQ(round_trip.timeout(), 2 * before);
  for (int i = 0; i < 100; ++i) round_trip.back_off();
  EXPECT_EQ(round_trip.timeout(), 1s);
  round_trip.reset_back_off();
  EXPECT_EQ(round_trip.timeout(), before);
}

}  // namespace
}  // namespace nnti::channel
