// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/frames.hpp"

#include <base/crc32c.hpp>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace nessie::streams::sinks {
namespace {

std::string hex(const Bytes &bytes) {
  std::string text;
  for (const auto each : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(each));
  return text;
}

// As in TCP.md.
TEST(TcpFrames, AreTheBytesOfThePage) {
  const std::string_view image = "abc";
  const auto checksum = crc32c(std::as_bytes(std::span(image)));
  EXPECT_EQ(hex(encode(Opening{"flow", 0x1122334455667788})),
            "4e53545000000001112233445566778800000004666c6f77eaa4ba53");
  EXPECT_EQ(hex(encode(Head{false, 7, 3, checksum})), "53544550364b3fb70000000000000007000000000000000306c9b3f9");
  EXPECT_EQ(hex(encode(Answer{true, 7, {}})), "444f4e450000000000000000000000077a42193d");
}

TEST(TcpFrames, AreReadAsTheyWereWritten) {
  const Opening opening{std::string(kMostStreamName, 'n'), 5};
  EXPECT_EQ(*decode_opening(encode(opening)), opening);
  for (const Head &head : {Head{false, ~0ull, 1ull << 40, 5}, Head{true, 3, 0, 0}})
    EXPECT_EQ(*decode_head(encode(head)), head);
  for (const Answer &answer : {Answer{true, 0, {}}, Answer{false, 9, "the disk is full"}})
    EXPECT_EQ(*decode_answer(encode(answer)), answer);
}

TEST(TcpFrames, ThatAreCutOrChangedAreRefused) {
  const auto whole = encode(Answer{false, 9, "why"});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(decode_answer({whole.data(), size}).code(), Code::kBadMessage) << size;
  for (std::size_t at = 0; at < kHeadBytes; ++at) {
    auto head = encode(Head{false, 7, 3, 1});
    head[at] ^= std::byte{1};
    EXPECT_EQ(decode_head(head).code(), Code::kBadMessage) << at;
  }
}

TEST(TcpFrames, OfAnotherVersionAreToldFromRubbish) {
  auto opening = encode(Opening{"flow", 1});
  opening[7] = std::byte{2};
  EXPECT_EQ(decode_opening(opening).code(), Code::kUnsupported);
  opening[0] = std::byte{'X'};
  EXPECT_EQ(decode_opening(opening).code(), Code::kBadMessage);
}

TEST(TcpFrames, CutTextThatIsTooLong) {
  const auto answer = decode_answer(encode(Answer{false, 1, std::string(5000, 'x')}));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text.size(), kMostAnswerText);
}

}  // namespace
}  // namespace nessie::streams::sinks
