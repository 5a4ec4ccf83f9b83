// SPDX-License-Identifier: BSD-3-Clause
// The decoders of the ucx transport take any bytes.
#include "nnti/transports/ucx/wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace nnti::ucx;
using Bytes = std::vector<std::byte>;

TEST(UcxWire, Chunk_IsATokenAndAFramedChunk) {
  Chunk chunk{7, {1, 2, 3, 8, 4, nnti::framed::ChunkType::kGot, 0}};
  const auto bytes = std::as_bytes(std::span(&chunk, 1));
  const auto decoded = decode_chunk(bytes, 4);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->token, 7u);
  EXPECT_EQ(decoded->header.operation, 1u);
  EXPECT_FALSE(decode_chunk(bytes, 5).has_value()) << "beyond its operation";
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_chunk(bytes.first(size), 4).has_value());
}

TEST(UcxWire, Hello_SurvivesARoundTrip_AndEveryTruncationIsRefused) {
  const auto bytes = encode_hello({42, Bytes(100, std::byte{7})});
  const auto hello = decode_hello(bytes);
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->token, 42u);
  EXPECT_EQ(hello->address, Bytes(100, std::byte{7}));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(decode_hello(std::span(bytes).first(size)).code(), nessie::Code::kBadMessage) << size;
}

TEST(UcxWire, HelloOfAnotherVersionOrByteOrder_IsUnsupported) {
  auto version = encode_hello({42, Bytes(1)});
  version[4] = std::byte{99};
  EXPECT_EQ(decode_hello(version).code(), nessie::Code::kUnsupported);
  auto order = encode_hello({42, Bytes(1)});
  std::reverse(order.begin(), order.begin() + 4);
  EXPECT_EQ(decode_hello(order).code(), nessie::Code::kUnsupported);
}

TEST(UcxWire, HelloThatNobodyCouldAnswer_IsRefused) {
  EXPECT_EQ(decode_hello(encode_hello({0, Bytes(1)})).code(), nessie::Code::kBadMessage);
  EXPECT_EQ(decode_hello(encode_hello({42, {}})).code(), nessie::Code::kBadMessage);
  EXPECT_EQ(decode_hello(encode_hello({42, Bytes(kMaxAddressBytes + 1)})).code(), nessie::Code::kBadMessage);
  auto longer = encode_hello({42, Bytes(1)});
  longer.push_back({});
  EXPECT_EQ(decode_hello(longer).code(), nessie::Code::kBadMessage);
}

}  // namespace
