// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace nnti::shm {
namespace {

using Bytes = std::vector<std::byte>;

struct Ring : testing::Test {
  std::unique_ptr<Lane> lane = std::make_unique<Lane>();
  RingWriter writer{*lane};
  RingReader reader{*lane};
  std::array<std::byte, kMaxMessageBytes> buffer;

  RingWriter::Outcome write(std::size_t size, int value) {
    return writer.write(Kind::kMessage, Bytes(size, static_cast<std::byte>(value)));
  }
  void expect(std::size_t size, int value) {
    ASSERT_TRUE(reader.ready());
    auto message = reader.read(buffer);
    ASSERT_TRUE(message);
    ASSERT_EQ(message->size_bytes, size);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(buffer[i], static_cast<std::byte>(value));
    reader.give_back();
  }
  std::atomic<std::uint64_t> &header(std::size_t slot) { return lane->ring[slot % kRingSlots].header; }
};

TEST_F(Ring, IsEmptyAtFirst) { EXPECT_FALSE(reader.ready()); }

TEST_F(Ring, GivesMessagesInOrderRoundAndRound) {
  for (int i = 0; i < 5000; ++i) {
    auto size = static_cast<std::size_t>(i * 37 % 3000);
    ASSERT_EQ(write(size, i), RingWriter::Outcome::kSent) << i;
    ASSERT_NO_FATAL_FAILURE(expect(size, i));
    ASSERT_FALSE(reader.ready());
  }
}

TEST_F(Ring, PayloadThatLooksLikeAHeaderIsNotTakenForOne) {
  // The payload's words are those of a header of a message of 8 bytes; messages end at every slot of the ring.
  Bytes tempting(4000);
  std::uint64_t word = 8 | std::uint64_t{1} << 32;
  for (std::size_t i = 0; i + 8 <= tempting.size(); i += 8) std::memcpy(&tempting[i], &word, 8);
  for (int i = 0; i < 3000; ++i) {
    auto size = static_cast<std::size_t>(i % 500 * 8);
    ASSERT_EQ(writer.write(Kind::kMessage, std::span(tempting).first(size)), RingWriter::Outcome::kSent);
    ASSERT_TRUE(reader.ready());
    ASSERT_TRUE(reader.read(buffer));
    reader.give_back();
    ASSERT_FALSE(reader.ready()) << i;
  }
}

TEST_F(Ring, AFullOneTakesNothingUntilSlotsAreGivenBack) {
  int written = 0;
  while (write(100, written) == RingWriter::Outcome::kSent) ++written;
  EXPECT_GT(written, 200);
  EXPECT_FALSE(writer.has_new_credit());
  EXPECT_EQ(lane->sender_starves.load(), 1u);
  for (int i = 0; i < written; ++i) ASSERT_NO_FATAL_FAILURE(expect(100, i));
  EXPECT_TRUE(writer.has_new_credit());
  EXPECT_EQ(write(kMaxMessageBytes, 7), RingWriter::Outcome::kSent);
  expect(kMaxMessageBytes, 7);
  EXPECT_EQ(lane->sender_starves.load(), 0u);
}

TEST_F(Ring, TheLargestMessageAlwaysFitsOnceTheReaderHasReadAll) {
  for (int i = 0; i < 2000; ++i) {
    auto size = i % 2 == 0 ? kMaxMessageBytes : static_cast<std::size_t>(i % 700);
    ASSERT_EQ(write(size, i), RingWriter::Outcome::kSent) << i;
    ASSERT_NO_FATAL_FAILURE(expect(size, i));
  }
}

TEST_F(Ring, GarbageInAHeaderIsNoMessage) {
  for (std::uint64_t garbage : {~std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{9} << 32,
                                (std::uint64_t{1} << 32) + kMaxMessageBytes + 1, std::uint64_t{1} << 40}) {
    header(0).store(garbage);
    ASSERT_TRUE(reader.ready());
    EXPECT_FALSE(reader.read(buffer)) << garbage;
  }
}

TEST_F(Ring, AReaderThatClaimsTheImpossibleIsFoundOut) {
  while (write(1000, 1) == RingWriter::Outcome::kSent) {}
  lane->consumed.store(1'000'000);
  EXPECT_EQ(write(1000, 1), RingWriter::Outcome::kBroken);
}

}  // namespace
}  // namespace nnti::shm
