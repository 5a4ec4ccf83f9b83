// SPDX-License-Identifier: BSD-3-Clause
#include <service/copy_buffers.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace nessie::service {
namespace {

constexpr std::size_t kSmall = 256 << 10, kLimit = 16 * kSmall;

class CopyBuffersTest : public ::testing::Test {
 protected:
  static std::unique_ptr<nssi::Runtime> open() {
    nssi::RuntimeOptions options;
    options.endpoint.transports = {"inproc"};
    options.endpoint.listen = false;
    return std::move(nssi::Runtime::open(std::move(options)).value());
  }
  /// Takes one; empty if there is none.
  static std::optional<nnti::RegisteredBuffer> take(CopyBuffers &buffers, std::size_t size_bytes) {
    auto taken = buffers.take(size_bytes);
    EXPECT_TRUE(taken.ok());
    return taken.ok() ? std::move(*taken) : std::nullopt;
  }
  /// As many as there are.
  static std::vector<nnti::RegisteredBuffer> take_all(CopyBuffers &buffers, std::size_t size_bytes) {
    std::vector<nnti::RegisteredBuffer> all;
    while (auto taken = take(buffers, size_bytes)) all.push_back(std::move(*taken));
    return all;
  }
  static void give_back(CopyBuffers &buffers, std::vector<nnti::RegisteredBuffer> all) {
    for (auto &buffer : all) buffers.give_back(std::move(buffer));
  }

  std::unique_ptr<nssi::Runtime> runtime_ = open();
};

TEST_F(CopyBuffersTest, AreAsLargeAsAskedAndCanBeWritten) {
  CopyBuffers buffers(*runtime_, 64 << 20);
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, kSmall - 1, kSmall, kSmall + 1, std::size_t{4} << 20}) {
    auto taken = take(buffers, size);
    ASSERT_TRUE(taken.has_value()) << size;
    EXPECT_GE(taken->bytes().size(), size);
    EXPECT_EQ(taken->rights(), nnti::Rights::kReadWrite);
    std::ranges::fill(taken->bytes(), std::byte{1});
  }
}

TEST_F(CopyBuffersTest, TakeTogetherNoMoreThanTheLimit) {
  CopyBuffers buffers(*runtime_, kLimit);
  auto all = take_all(buffers, kSmall);
  EXPECT_EQ(all.size(), kLimit / kSmall);
  EXPECT_FALSE(take(buffers, 1).has_value());
}

TEST_F(CopyBuffersTest, AreUsedAgain) {
  CopyBuffers buffers(*runtime_, kLimit);
  auto first = take(buffers, kSmall);
  ASSERT_TRUE(first.has_value());
  const auto *memory = first->bytes().data();
  buffers.give_back(std::move(*first));
  auto second = take(buffers, kSmall / 2);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->bytes().data(), memory);
}

TEST_F(CopyBuffersTest, ThatAreGivenBackWhenTheLimitIsReachedCanBeTakenAgain) {
  CopyBuffers buffers(*runtime_, kLimit);
  auto all = take_all(buffers, kSmall);
  for (int i = 0; i < 100; ++i) {
    buffers.give_back(std::move(all.back()));
    auto again = take(buffers, kSmall);
    ASSERT_TRUE(again.has_value());
    EXPECT_FALSE(take(buffers, kSmall).has_value());
    all.back() = std::move(*again);
  }
}

TEST_F(CopyBuffersTest, ThereIsAlwaysOne) {
  CopyBuffers buffers(*runtime_, 1);
  for (std::size_t size : {kSmall, 100 * kSmall, kSmall / 2}) {
    auto taken = take(buffers, size);
    ASSERT_TRUE(taken.has_value()) << size;
    EXPECT_FALSE(take(buffers, 1).has_value());
    buffers.give_back(std::move(*taken));
  }
}

TEST_F(CopyBuffersTest, IdleOnesOfAnotherSizeMakeRoom) {
  CopyBuffers buffers(*runtime_, kLimit);
  for (int i = 0; i < 10; ++i) {
    auto small = take_all(buffers, kSmall);
    EXPECT_EQ(small.size(), kLimit / kSmall);
    give_back(buffers, std::move(small));
    auto large = take_all(buffers, kLimit);
    EXPECT_EQ(large.size(), 1u);
    give_back(buffers, std::move(large));
  }
}

TEST_F(CopyBuffersTest, ThatAreTakenAreNotDropped) {
  CopyBuffers buffers(*runtime_, kLimit);
  auto small = take_all(buffers, kSmall);
  const auto half = small.begin() + static_cast<std::ptrdiff_t>(small.size() / 2);
  std::vector<nnti::RegisteredBuffer> idle(std::make_move_iterator(half), std::make_move_iterator(small.end()));
  small.erase(half, small.end());
  for (auto &buffer : small) std::ranges::fill(buffer.bytes(), std::byte{7});
  give_back(buffers, std::move(idle));
  EXPECT_FALSE(take(buffers, kLimit).has_value());
  auto medium = take(buffers, kLimit / 2);
  ASSERT_TRUE(medium.has_value());
  std::ranges::fill(medium->bytes(), std::byte{8});
  for (const auto &buffer : small)
    EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](std::byte byte) { return byte == std::byte{7}; }));
}

TEST_F(CopyBuffersTest, MoreThanTheSystemHasIsAnErrorOnlyIfNothingCanBeGivenBack) {
  constexpr std::size_t kTooMuch = std::size_t{1} << 50;
  CopyBuffers buffers(*runtime_, 2 * kTooMuch);
  EXPECT_EQ(buffers.take(kTooMuch).code(), nessie::Code::kNoMemory);
  auto taken = take(buffers, 1);
  ASSERT_TRUE(taken.has_value());
  EXPECT_FALSE(take(buffers, kTooMuch).has_value());
  EXPECT_TRUE(take(buffers, 1).has_value());
}

}  // namespace
}  // namespace nessie::service
