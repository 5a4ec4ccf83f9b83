// SPDX-License-Identifier: BSD-3-Clause
// The decoders of the ofi transport take any bytes.
#include "nnti/transports/ofi/wire.hpp"

#include "nnti/transports/ofi/library.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <random>

namespace {

using namespace nnti::ofi;
using Bytes = std::vector<std::byte>;

Bytes frame_of(FrameHeader header, std::size_t body) {
  header.size = static_cast<std::uint32_t>(body);
  Bytes bytes(sizeof header + body);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

FrameHeader header_of(FrameType type) {
  FrameHeader header;
  header.type = type;
  return header;
}

TEST(OfiWire, Frame_IsTakenWhole) {
  auto frame = decode_frame(frame_of(header_of(FrameType::kMessage), 10));
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->body.size(), 10u);
  EXPECT_TRUE(decode_frame(frame_of(header_of(FrameType::kBye), 0)).has_value());
}

TEST(OfiWire, FrameThatContradictsItself_IsRefused) {
  auto bytes = frame_of(header_of(FrameType::kMessage), 10);
  bytes.pop_back();
  EXPECT_FALSE(decode_frame(bytes).has_value());
  EXPECT_FALSE(decode_frame(std::span(bytes).first(sizeof(FrameHeader) - 1)).has_value());
  EXPECT_FALSE(decode_frame(frame_of(header_of(static_cast<FrameType>(0)), 0)).has_value());
  EXPECT_FALSE(decode_frame(frame_of(header_of(static_cast<FrameType>(8)), 0)).has_value());
  EXPECT_TRUE(decode_frame(frame_of(header_of(FrameType::kMessage), kMaxMessageBytes)).has_value());
  EXPECT_FALSE(decode_frame(frame_of(header_of(FrameType::kMessage), kMaxMessageBytes + 1)).has_value());
  EXPECT_TRUE(decode_frame(frame_of(header_of(FrameType::kDone), kMaxInlineBytes)).has_value());
  EXPECT_FALSE(decode_frame(frame_of(header_of(FrameType::kDone), kMaxInlineBytes + 1)).has_value());
  auto put = header_of(FrameType::kPut);
  put.length = 9;
  EXPECT_FALSE(decode_frame(frame_of(put, 8)).has_value());
  auto get = header_of(FrameType::kGet);
  get.length = kMaxInlineBytes + 1;
  EXPECT_FALSE(decode_frame(frame_of(get, 0)).has_value());
}

TEST(OfiWire, Hello_SurvivesARoundTrip_AndEveryTruncationIsRefused) {
  const auto bytes = encode_hello({42, "tcp;ofi_rxm", Bytes(16, std::byte{1})});
  auto hello = decode_hello(bytes);
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->token, 42u);
  EXPECT_EQ(hello->provider, "tcp;ofi_rxm");
  EXPECT_EQ(hello->name.size(), 16u);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_hello(std::span(bytes).first(size)).ok());
}

TEST(OfiWire, AnyBytes_AreDecodedOrRefused) {
  std::mt19937 random(1);
  std::vector<Bytes> corpus = {frame_of(header_of(FrameType::kPut), 64), encode_hello({42, "tcp", Bytes(28)})};
  for (int i = 0; i < 100'000; ++i) {
    Bytes bytes = corpus[random() % corpus.size()];
    for (auto changes = random() % 4; changes != 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % 4 == 0 ? random() % bytes.size() : bytes.size());
    auto frame = decode_frame(bytes);
    EXPECT_TRUE(!frame || frame->body.size() + sizeof(FrameHeader) == bytes.size());
    auto hello = decode_hello(bytes);
    EXPECT_TRUE(!hello.ok() || hello->name.size() <= kMaxNameBytes);
  }
}

void count_signal(int) {}

TEST(OfiLibrary, LeavesTheProgramsSignalHandlersAsTheyAre) {
  ::unsetenv("IPATH_NO_BACKTRACE");
  ::unsetenv("HFI_NO_BACKTRACE");
  struct sigaction own {};
  own.sa_handler = count_signal;
  ASSERT_EQ(::sigaction(SIGTERM, &own, nullptr), 0);
  if (!load_library().ok()) GTEST_SKIP() << "this machine has no libfabric";
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGTERM, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, count_signal);
  ASSERT_EQ(::sigaction(SIGINT, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

}  // namespace
