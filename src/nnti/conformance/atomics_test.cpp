// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/conformance/conformance.hpp"

#include <atomic>
#include <cstring>

namespace nnti::conformance {
namespace {

constexpr std::uint64_t kManyAdditions = kSanitized ? 500 : 5'000;
constexpr auto kAllRights = Rights::kReadWrite | Rights::kRemoteAtomic;

class Atomics : public Conformance {
 protected:
  /// Waits for the operation that `start` starts; its status and, through `previous`, the word's former value.
  template <class Start> static Status finish(Pair &pair, Start start) {
    Outcome outcome;
    start(outcome);
    return pair.finish(outcome);
  }
  static Status add(Pair &pair, const RemoteBuffer &remote, std::uint64_t offset, std::uint64_t operand,
                    std::uint64_t &previous) {
    return finish(pair, [&](Outcome &outcome) {
      pair.client.endpoint->fetch_add(pair.to_server, remote, offset, operand, previous, outcome);
    });
  }
  static std::uint64_t word(const RegisteredBuffer &buffer, std::size_t index) {
    return std::atomic_ref(reinterpret_cast<std::uint64_t *>(buffer.bytes().data())[index]).load();
  }
};

/// A word of the server's to which its client adds.
struct Counter : Pair {
  explicit Counter(const Subject &subject) : Pair(subject) {
    auto registered =
        server.endpoint->register_memory(std::as_writable_bytes(std::span(&word, 1)), Rights::kRemoteAtomic);
    EXPECT_TRUE(registered.ok());
    if (registered.ok()) buffer = std::move(*registered);
    remote = describe(buffer);
  }
  void begin_adding(std::uint64_t &former, Outcome &outcome) {
    client.endpoint->fetch_add(to_server, remote, 0, 1, former, outcome);
  }
  alignas(8) std::uint64_t word = 0;
  RegisteredBuffer buffer;
  RemoteBuffer remote;
  std::uint64_t previous = 99;
};

TEST_P(Atomics, AddAndReturnTheFormerValueInMemoryOfBothKinds) {
  Pair pair(subject());
  alignas(8) std::array<std::uint64_t, 4> own{5, 6, 7, 8};
  auto registered =
      pair.server.endpoint->register_memory(std::as_writable_bytes(std::span(own)), Rights::kRemoteAtomic);
  auto allocated = pair.server.endpoint->allocate(32, Rights::kRemoteAtomic);
  ASSERT_TRUE(registered.ok() && allocated.ok());
  for (auto *buffer : {&*registered, &*allocated}) {
    const auto before = word(*buffer, 2);
    std::uint64_t previous = 99;
    ASSERT_TRUE(add(pair, pair.describe(*buffer), 16, 1000, previous).ok());
    EXPECT_EQ(previous, before);
    EXPECT_EQ(word(*buffer, 2), before + 1000);
    ASSERT_TRUE(add(pair, pair.describe(*buffer), 16, ~0ull, previous).ok());
    EXPECT_EQ(previous, before + 1000);
    EXPECT_EQ(word(*buffer, 2), before + 999);
  }
  EXPECT_EQ(own[1], 6u);
  EXPECT_EQ(own[3], 8u);
}

TEST_P(Atomics, SwapOnlyIfTheWordIsAsExpected) {
  Pair pair(subject());
  auto buffer = pair.server.endpoint->allocate(8, kAllRights);
  ASSERT_TRUE(buffer.ok());
  auto remote = pair.describe(*buffer);
  std::uint64_t previous = 99;
  auto swap = [&](std::uint64_t expected, std::uint64_t desired) {
    return finish(pair, [&](Outcome &outcome) {
      pair.client.endpoint->compare_swap(pair.to_server, remote, 0, expected, desired, previous, outcome);
    });
  };
  ASSERT_TRUE(swap(1, 2).ok());
  EXPECT_EQ(previous, 0u);
  EXPECT_EQ(word(*buffer, 0), 0u);
  ASSERT_TRUE(swap(0, 7).ok());
  EXPECT_EQ(previous, 0u);
  EXPECT_EQ(word(*buffer, 0), 7u);
}

TEST_P(Atomics, ManyAtOnceAreEachExecutedOnce) {
  Counter pair(subject());
  std::vector<Outcome> outcomes(kManyAdditions);
  std::vector<std::uint64_t> previous(kManyAdditions);
  std::uint64_t begun = 0, ended = 0;
  while (ended < kManyAdditions) {
    for (; begun < kManyAdditions && begun < ended + 1000; ++begun) pair.begin_adding(previous[begun], outcomes[begun]);
    ASSERT_TRUE(pair.drive_until([&] { return outcomes[ended].times != 0; }));
    while (ended < begun && outcomes[ended].times != 0) ++ended;
  }
  EXPECT_EQ(std::atomic_ref(pair.word).load(), kManyAdditions);
  for (std::uint64_t i = 0; i < kManyAdditions; ++i) {
    ASSERT_TRUE(outcomes[i].status.ok()) << outcomes[i].status.error().to_string();
    ASSERT_EQ(outcomes[i].times, 1);
    ASSERT_EQ(previous[i], i);
  }
}

TEST_P(Atomics, OutsideTheBufferUnalignedOrWithoutTheRightChangeNothing) {
  Pair pair(subject());
  alignas(8) std::array<std::uint64_t, 2> words{3, 4};
  auto bytes = std::as_writable_bytes(std::span(words));
  auto buffer = pair.server.endpoint->register_memory(bytes, Rights::kRemoteAtomic);
  auto no_right = pair.server.endpoint->register_memory(bytes, Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok() && no_right.ok());
  auto remote = pair.describe(*buffer);
  std::uint64_t previous = 99;
  EXPECT_EQ(add(pair, remote, 9, 1, previous).code(), Code::kOutOfRange);
  EXPECT_EQ(add(pair, remote, 16, 1, previous).code(), Code::kOutOfRange);
  EXPECT_EQ(add(pair, remote, ~0ull, 1, previous).code(), Code::kOutOfRange);
  auto forged = remote;
  forged.size_bytes = 1 << 20;
  EXPECT_EQ(add(pair, forged, 16, 1, previous).code(), Code::kOutOfRange);
  EXPECT_EQ(add(pair, remote, 4, 1, previous).code(), Code::kInvalidArgument);
  EXPECT_EQ(add(pair, pair.describe(*no_right), 0, 1, previous).code(), Code::kRefused);
  forged = remote;
  ++forged.key;
  EXPECT_EQ(add(pair, forged, 0, 1, previous).code(), Code::kRefused);
  buffer->reset();
  EXPECT_EQ(add(pair, remote, 0, 1, previous).code(), Code::kRefused);
  EXPECT_EQ(previous, 99u);
  EXPECT_EQ(words[0], 3u);
  EXPECT_EQ(words[1], 4u);
}

TEST_P(Atomics, WithAPeerThatIsGoneEndWithPeerLost) {
  Counter pair(subject());
  pair.server.endpoint.reset();
  ASSERT_TRUE(drive({&pair.client}, [&] { return !pair.client.seen.lost.empty(); }));
  Outcome outcome;
  pair.begin_adding(pair.previous, outcome);
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.status.code(), Code::kPeerLost);
  EXPECT_EQ(pair.previous, 99u);
}

TEST_P(Atomics, PendingWithAPeerThatDiesEndWithPeerLost) {
  Counter pair(subject());
  Outcome outcome;
  pair.begin_adding(pair.previous, outcome);
  const bool at_once = outcome.times != 0;  // carried out by the initiator itself
  pair.server.endpoint.reset();
  ASSERT_TRUE(drive({&pair.client}, [&] { return outcome.times != 0; }));
  EXPECT_EQ(outcome.status.code(), at_once ? Code::kOk : Code::kPeerLost);
}

TEST_P(Atomics, PendingAtADisconnectAreCancelled) {
  Counter pair(subject());
  Outcome outcome;
  pair.begin_adding(pair.previous, outcome);
  const bool at_once = outcome.times != 0;  // carried out by the initiator itself
  pair.client.endpoint->disconnect(pair.to_server);
  EXPECT_EQ(outcome.times, 1);
  EXPECT_EQ(outcome.status.code(), at_once ? Code::kOk : Code::kCancelled);
}

INSTANTIATE_TEST_SUITE_P(Over, Atomics, testing::ValuesIn(subjects()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::conformance
