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
  static constexpr std::uint64_t kSlots = 64;
  static constexpr std::size_t kLargest = kSlots / 4 * kSlotPayload;
  std::atomic<std::uint64_t> consumed{0};
  std::atomic<std::uint32_t> starves{0};
  std::unique_ptr<Slot[]> slots = std::make_unique<Slot[]>(kSlots);
  Mailbox mailbox{&consumed, &starves, slots.get(), kSlots};
  RingWriter writer{mailbox};
  RingReader reader{mailbox};
  std::array<std::byte, kMaxInPlaceBytes> buffer;

  Outcome write(std::size_t size, int value) {
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
  std::atomic<std::uint64_t> &header(std::size_t slot) { return slots[slot % kSlots].header; }
};

TEST_F(Ring, IsEmptyAtFirst) { EXPECT_FALSE(reader.ready()); }

TEST_F(Ring, GivesMessagesInOrderRoundAndRound) {
  for (int i = 0; i < 5000; ++i) {
    const auto size = std::size_t{37} * static_cast<unsigned>(i) % (kLargest + 1);
    ASSERT_EQ(write(size, i), Outcome::kSent) << i;
    ASSERT_NO_FATAL_FAILURE(expect(size, i));
    ASSERT_FALSE(reader.ready());
  }
}

TEST_F(Ring, PayloadThatLooksLikeAHeaderIsNotTakenForOne) {
  // The payload's words are those of a header of a message of 8 bytes; messages end at every slot of the ring.
  Bytes tempting(kLargest);
  std::uint32_t slot = 0;
  for (int i = 0; i < 3000; ++i) {
    auto size = static_cast<std::size_t>(i) % (kLargest / 8 + 1) * 8;
    slot += static_cast<std::uint32_t>(slots_for(size));
    for (std::size_t at = 0; at + 8 <= size; at += 8) {
      auto word = 8 | std::uint64_t{1} << 16 | static_cast<std::uint64_t>(slot + 1 + at / 8 % kSlots) << 32;
      std::memcpy(&tempting[at], &word, 8);
    }
    ASSERT_EQ(writer.write(Kind::kMessage, std::span(tempting).first(size)), Outcome::kSent);
    ASSERT_TRUE(reader.ready());
    ASSERT_TRUE(reader.read(buffer));
    reader.give_back();
    ASSERT_FALSE(reader.ready()) << i;
  }
}

TEST_F(Ring, AFullOneTakesNothingUntilSlotsAreGivenBack) {
  int written = 0;
  while (write(100, written) == Outcome::kSent) ++written;
  EXPECT_EQ(written, static_cast<int>(kSlots / 2));
  EXPECT_FALSE(writer.has_new_credit());
  EXPECT_EQ(starves.load(), 1u);
  for (int i = 0; i < written; ++i) ASSERT_NO_FATAL_FAILURE(expect(100, i));
  EXPECT_TRUE(writer.has_new_credit());
  EXPECT_EQ(write(kLargest, 7), Outcome::kSent);
  expect(kLargest, 7);
  EXPECT_EQ(starves.load(), 0u);
}

TEST_F(Ring, TheLargestMessageAlwaysFitsOnceTheReaderHasReadAll) {
  for (int i = 0; i < 2000; ++i) {
    auto size = i % 2 == 0 ? kLargest : static_cast<std::size_t>(i % 700);
    ASSERT_EQ(write(size, i), Outcome::kSent) << i;
    ASSERT_NO_FATAL_FAILURE(expect(size, i));
  }
}

TEST_F(Ring, GarbageInAHeaderIsNoMessage) {
  for (std::uint64_t garbage :
       {std::uint64_t{0xffffffff}, std::uint64_t{1}, std::uint64_t{9} << 16, (std::uint64_t{1} << 16) + kLargest + 1,
        std::uint64_t{1} << 16 | std::uint64_t{40} << 24}) {
    header(0).store(garbage | std::uint64_t{1} << 32);
    ASSERT_TRUE(reader.ready());
    EXPECT_FALSE(reader.read(buffer)) << garbage;
  }
}

TEST_F(Ring, WhatAnEarlierRoundLeftIsNoMessage) {
  for (std::uint64_t mark : {0u, 2u, 65u, 0xffffffffu}) {
    header(0).store(8 | std::uint64_t{1} << 16 | mark << 32);
    EXPECT_FALSE(reader.ready()) << mark;
  }
}

TEST_F(Ring, AReaderThatClaimsTheImpossibleIsFoundOut) {
  while (write(500, 1) == Outcome::kSent) {}
  consumed.store(1'000'000);
  EXPECT_EQ(write(500, 1), Outcome::kBroken);
}

}  // namespace
}  // namespace nnti::shm
