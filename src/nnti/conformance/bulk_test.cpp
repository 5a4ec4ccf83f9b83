// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/conformance/conformance.hpp"

#include <algorithm>

namespace nnti::conformance {
namespace {

class Bulk : public Conformance {};

/// A buffer of the server in memory of its own, and one in memory that peers can map.
class Buffers {
 public:
  Buffers(Pair &pair, std::size_t size_bytes, Rights rights = Rights::kReadWrite) : memory_(size_bytes) {
    auto own = pair.server.endpoint->register_memory(memory_, rights);
    auto shared = pair.server.endpoint->allocate(size_bytes, rights);
    EXPECT_TRUE(own.ok() && shared.ok());
    both[0] = std::move(*own);
    both[1] = std::move(*shared);
  }
  void fill(const Bytes &bytes) {
    for (auto &buffer : both) std::ranges::copy(bytes, buffer.bytes().begin());
  }

 private:
  Bytes memory_;

 public:
  RegisteredBuffer both[2];
};

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

TEST_P(Bulk, GetReadsWhatIsThere) {
  Pair pair(subject());
  for (std::size_t size : {1u, 63u, 64u, 65u, 4095u, 4096u, 65536u, 65537u, (1u << 20) + 3u}) {
    Buffers buffers(pair, size);
    buffers.fill(pattern(size, static_cast<unsigned>(size)));
    for (auto &buffer : buffers.both) {
      Bytes local(size);
      auto status = pair.get(pair.describe(buffer), 0, local);
      ASSERT_TRUE(status.ok()) << size << ": " << status.error().to_string();
      EXPECT_TRUE(equal(local, buffer.bytes())) << size;
    }
  }
}

TEST_P(Bulk, PutWritesWhatIsGivenAndNothingElse) {
  Pair pair(subject());
  for (std::size_t size : {1u, 64u, 4097u, 65536u, 300'000u}) {
    Buffers buffers(pair, size + 20);
    for (auto &buffer : buffers.both) {
      auto local = pattern(size);
      auto status = pair.put(pair.describe(buffer), 10, local);
      ASSERT_TRUE(status.ok()) << size << ": " << status.error().to_string();
      EXPECT_TRUE(equal(local, buffer.bytes().subspan(10, size))) << size;
      EXPECT_TRUE(equal(buffer.bytes().first(10), Bytes(10)));
      EXPECT_TRUE(equal(buffer.bytes().subspan(size + 10, 10), Bytes(10)));
    }
  }
}

TEST_P(Bulk, SixtyFourMebibytesArrive) {
  Pair pair(subject());
  constexpr std::size_t kSize = (kSanitized ? 4 : 64) << 20;
  Buffers buffers(pair, kSize);
  auto wanted = pattern(kSize);
  for (auto &buffer : buffers.both) {
    const auto put = pair.put(pair.describe(buffer), 0, wanted);
    ASSERT_TRUE(put.ok()) << put.error().to_string();
    Bytes local(kSize);
    const auto got = pair.get(pair.describe(buffer), 0, local);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_TRUE(local == wanted);
  }
}

TEST_P(Bulk, OffsetsCountFromTheBuffersBeginning) {
  Pair pair(subject());
  Buffers buffers(pair, 10'000);
  buffers.fill(pattern(10'000));
  for (auto &buffer : buffers.both) {
    Bytes local(100);
    ASSERT_TRUE(pair.get(pair.describe(buffer), 9'900, local).ok());
    EXPECT_TRUE(equal(local, buffer.bytes().subspan(9'900)));
  }
}

TEST_P(Bulk, NothingMayBeMovedAnywhereInTheBuffer) {
  Pair pair(subject());
  Buffers buffers(pair, 100);
  for (auto &buffer : buffers.both) {
    EXPECT_TRUE(pair.get(pair.describe(buffer), 100, {}).ok());
    EXPECT_TRUE(pair.put(pair.describe(buffer), 0, {}).ok());
    EXPECT_EQ(pair.get(pair.describe(buffer), 101, {}).code(), Code::kOutOfRange);
  }
}

TEST_P(Bulk, BeyondTheBufferIsOutOfRangeAndNothingMoves) {
  Pair pair(subject());
  Buffers buffers(pair, 1000);
  for (auto &buffer : buffers.both) {
    Bytes local = pattern(100), before = local;
    for (std::uint64_t offset :
         {std::uint64_t{901}, std::uint64_t{1000}, std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 50}) {
      EXPECT_EQ(pair.get(pair.describe(buffer), offset, local).code(), Code::kOutOfRange) << offset;
      EXPECT_EQ(pair.put(pair.describe(buffer), offset, local).code(), Code::kOutOfRange) << offset;
    }
    EXPECT_EQ(local, before);
    EXPECT_TRUE(equal(buffer.bytes(), Bytes(1000)));
  }
}

TEST_P(Bulk, AForgedSizeDoesNotWidenTheBuffer) {
  Pair pair(subject());
  Buffers buffers(pair, 1000);
  for (auto &buffer : buffers.both) {
    auto forged = pair.describe(buffer);
    forged.size_bytes = 1 << 20;
    Bytes local(100);
    EXPECT_EQ(pair.get(forged, 950, local).code(), Code::kOutOfRange);
    EXPECT_EQ(pair.put(forged, 100'000, local).code(), Code::kOutOfRange);
    forged.size_bytes = ~std::uint64_t{0};
    EXPECT_EQ(pair.get(forged, ~std::uint64_t{0} - 99, local).code(), Code::kOutOfRange);
  }
}

TEST_P(Bulk, ARightThatIsMissingIsRefusedAndNothingMoves) {
  Pair pair(subject());
  Buffers readable(pair, 100, Rights::kRemoteRead), writable(pair, 100, Rights::kRemoteWrite);
  readable.fill(pattern(100));
  writable.fill(pattern(100));
  for (int i = 0; i < 2; ++i) {
    Bytes zeros(100);
    auto read_only = pair.describe(readable.both[i]), write_only = pair.describe(writable.both[i]);
    read_only.rights = write_only.rights = Rights::kReadWrite;  // what the handle says changes nothing
    EXPECT_EQ(pair.put(read_only, 0, zeros).code(), Code::kRefused);
    EXPECT_TRUE(equal(readable.both[i].bytes(), pattern(100)));
    EXPECT_EQ(pair.get(write_only, 0, zeros).code(), Code::kRefused);
    EXPECT_EQ(zeros, Bytes(100));
    EXPECT_TRUE(pair.get(read_only, 0, zeros).ok());
    EXPECT_TRUE(pair.put(write_only, 0, zeros).ok());
  }
}

TEST_P(Bulk, AForgedHandleIsRefusedAndKillsNobody) {
  Pair pair(subject());
  Buffers buffers(pair, 1000);
  for (auto &buffer : buffers.both) {
    Bytes local(100);
    auto good = pair.describe(buffer);
    auto forged = good;
    forged.key ^= 1;
    EXPECT_EQ(pair.get(forged, 0, local).code(), Code::kRefused);
    EXPECT_EQ(pair.put(forged, 0, local).code(), Code::kRefused);
    forged = good;
    forged.slot += 77;
    EXPECT_FALSE(pair.get(forged, 0, local).ok());
    forged = {0, 0, 1000, 0, 0xffffffff, Rights::kReadWrite};
    EXPECT_FALSE(pair.get(forged, 0, local).ok());
    EXPECT_TRUE(pair.get(good, 0, local).ok());
  }
}

TEST_P(Bulk, ADroppedRegistrationIsRefused) {
  Pair pair(subject());
  Buffers buffers(pair, 1000);
  for (auto &buffer : buffers.both) {
    Bytes local(100);
    auto handle = pair.describe(buffer);
    ASSERT_TRUE(pair.get(handle, 0, local).ok());
    buffer.reset();
    EXPECT_EQ(pair.get(handle, 0, local).code(), Code::kRefused);
    EXPECT_EQ(pair.put(handle, 0, local).code(), Code::kRefused);
  }
  Buffers again(pair, 1000);
  for (auto &buffer : again.both) {
    Bytes local(100);
    EXPECT_TRUE(pair.put(pair.describe(buffer), 0, local).ok());
  }
}

TEST_P(Bulk, ManyTransfersMayBePending) {
  Pair pair(subject());
  constexpr std::size_t kCount = 200, kPiece = 5000;
  Buffers buffers(pair, kCount * kPiece);
  auto wanted = pattern(kCount * kPiece);
  buffers.fill(wanted);
  for (auto &buffer : buffers.both) {
    auto handle = pair.describe(buffer);
    Bytes local(kCount * kPiece);
    std::vector<Outcome> outcomes(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
      pair.client.endpoint->get(pair.to_server, handle, i * kPiece, std::span(local).subspan(i * kPiece, kPiece),
                                outcomes[i]);
    for (auto &outcome : outcomes) ASSERT_TRUE(pair.finish(outcome).ok());
    EXPECT_EQ(local, wanted);
  }
}

TEST_P(Bulk, TheServerPullsFromItsClient) {
  Pair pair(subject());
  auto memory = pattern(100'000);
  auto buffer = pair.client.endpoint->register_memory(memory, Rights::kRemoteRead);
  ASSERT_TRUE(buffer.ok());
  auto handle = buffer->describe_for(pair.to_server);
  ASSERT_TRUE(handle.ok());
  Bytes local(memory.size());
  Outcome outcome;
  pair.server.endpoint->get(pair.to_client, *handle, 0, local, outcome);
  ASSERT_TRUE(pair.finish(outcome).ok());
  EXPECT_EQ(local, memory);
}

TEST_P(Bulk, APutIsVisibleBeforeTheMessageThatFollowsIt) {
  Pair pair(subject());
  Buffers buffers(pair, 4096);
  for (auto &buffer : buffers.both) {
    auto handle = pair.describe(buffer);
    int wrong = 0, seen = 0;
    pair.server.seen.message_hook = [&](PeerId, std::span<const std::byte> message) {
      ++seen;
      wrong += !std::ranges::all_of(buffer.bytes(), [&](std::byte byte) { return byte == message[0]; });
    };
    for (int round = 1; round <= 50; ++round) {
      Bytes local(4096, static_cast<std::byte>(round));
      ASSERT_TRUE(pair.put(handle, 0, local).ok());
      ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, std::span(local).first(1)).ok());
      ASSERT_TRUE(pair.drive_until([&] { return seen == round; }));
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST_P(Bulk, ABufferOutlivesItsEndpointHarmlessly) {
  RegisteredBuffer orphan;
  {
    Pair pair(subject());
    auto buffer = pair.server.endpoint->allocate(100, Rights::kReadWrite);
    ASSERT_TRUE(buffer.ok() && buffer->describe_for(pair.to_client).ok());
    orphan = std::move(*buffer);
  }
  orphan.bytes()[99] = std::byte{1};
  EXPECT_EQ(orphan.describe_for(PeerId{1}).code(), Code::kPeerLost);
}

TEST_P(Bulk, TransfersWithAPeerThatIsGoneEndAtOnce) {
  Pair pair(subject());
  Buffers buffers(pair, 100);
  auto handle = pair.describe(buffers.both[0]);
  pair.client.endpoint->disconnect(pair.to_server);
  Bytes local(10);
  EXPECT_EQ(pair.get(handle, 0, local).code(), Code::kPeerLost);
}

// --- views --------------------------------------------------------------------------------------------------------------

class Views : public Conformance {};

/// The client's view of a buffer of the server, or of a part of it.
Result<PeerView> view(Pair &pair, const RemoteBuffer &remote, std::uint64_t offset = 0) {
  return pair.client.endpoint->view(pair.to_server, remote, offset, remote.size_bytes - offset);
}

/// As `wanted`, if this memory could be viewed at all.
void expect_refused(Pair &pair, const Result<PeerView> &result, Code wanted) {
  ASSERT_FALSE(result.ok());
  if (!pair.server.endpoint->can_view(pair.to_client) && result.code() == Code::kUnsupported) return;
  EXPECT_EQ(result.code(), wanted);
}

TEST_P(Views, OfAllocatedMemoryAreOfferedByTransportsThatMapIt) {
  Pair pair(subject());
  const bool maps = pair.server.endpoint->can_view(pair.to_client);
  EXPECT_EQ(maps, pair.client.endpoint->can_view(pair.to_server));
  EXPECT_TRUE(maps || !subject().name.starts_with("shm"));
  for (std::size_t size : {1u, 4095u, 4096u, 65537u, (1u << 20) + 3u}) {
    Buffers buffers(pair, size);
    buffers.fill(pattern(size));
    auto seen = view(pair, pair.describe(buffers.both[1]));
    ASSERT_EQ(seen.ok(), maps) << size;
    EXPECT_EQ(seen.code(), maps ? Code::kOk : Code::kUnsupported) << size;
    EXPECT_TRUE(!maps || equal(seen->bytes(), pattern(size))) << size;
  }
}

TEST_P(Views, OfTheApplicationsMemoryAreUnsupported) {
  Pair pair(subject());
  Buffers buffers(pair, 4096);
  EXPECT_EQ(view(pair, pair.describe(buffers.both[0])).code(), Code::kUnsupported);
}

TEST_P(Views, OfAnUnknownPeerAreRefused) {
  Pair pair(subject());
  Buffers buffers(pair, 4096);
  EXPECT_EQ(pair.client.endpoint->view(PeerId{4711}, pair.describe(buffers.both[1]), 0, 1).code(), Code::kPeerLost);
  EXPECT_FALSE(pair.client.endpoint->can_view(PeerId{4711}));
  EXPECT_FALSE(pair.client.endpoint->has_unsent(PeerId{4711}));
}

TEST_P(Views, BeginWhereTheyAreToldAndShowWhatTheOwnerWritesLater) {
  Pair pair(subject());
  if (!pair.server.endpoint->can_view(pair.to_client)) GTEST_SKIP() << subject().name << " maps no memory";
  Buffers buffers(pair, 100'000);
  buffers.fill(pattern(100'000));
  auto seen = view(pair, pair.describe(buffers.both[1]), 5001);
  ASSERT_TRUE(seen.ok()) << seen.error().to_string();
  EXPECT_TRUE(equal(seen->bytes(), buffers.both[1].bytes().subspan(5001)));
  std::ranges::fill(buffers.both[1].bytes(), std::byte{9});
  EXPECT_TRUE(equal(seen->bytes(), Bytes(100'000 - 5001, std::byte{9})));
}

TEST_P(Views, BeyondTheBufferAreOutOfRange) {
  Pair pair(subject());
  Buffers buffers(pair, 1000);
  const auto remote = pair.describe(buffers.both[1]);
  for (std::uint64_t offset : {std::uint64_t{901}, std::uint64_t{1000}, std::uint64_t{1} << 40, ~std::uint64_t{0} - 50})
    expect_refused(pair, pair.client.endpoint->view(pair.to_server, remote, offset, 100), Code::kOutOfRange);
  auto wider = remote;
  wider.size_bytes = 1 << 20;
  expect_refused(pair, view(pair, wider, 950), Code::kOutOfRange);
}

TEST_P(Views, NeedTheRightToRead) {
  Pair pair(subject());
  Buffers writable(pair, 1000, Rights::kRemoteWrite);
  auto remote = pair.describe(writable.both[1]);
  remote.rights = Rights::kReadWrite;  // what the handle says changes nothing
  expect_refused(pair, view(pair, remote), Code::kRefused);
}

TEST_P(Views, OfForgedHandlesAreRefused) {
  Pair pair(subject());
  Buffers buffers(pair, 1000);
  const auto good = pair.describe(buffers.both[1]);
  auto forged = good;
  forged.key ^= 1;
  expect_refused(pair, view(pair, forged), Code::kRefused);
  forged = good;
  forged.slot += 77;
  expect_refused(pair, view(pair, forged), Code::kRefused);
  expect_refused(pair, view(pair, {0, 0, 1000, 0, 0xffffffff, Rights::kReadWrite}), Code::kRefused);
  EXPECT_EQ(view(pair, good).ok(), pair.server.endpoint->can_view(pair.to_client));
}

TEST_P(Views, OfDroppedRegistrationsAreRefusedAndThoseThatExistGoOn) {
  Pair pair(subject());
  Buffers buffers(pair, 300'000);
  buffers.fill(pattern(300'000));
  const auto remote = pair.describe(buffers.both[1]);
  auto seen = view(pair, remote);
  buffers.both[1].reset();
  expect_refused(pair, view(pair, remote), Code::kRefused);
  Buffers others(pair, 300'000);  // may take the same place
  Bytes local(300'000);
  ASSERT_TRUE(pair.get(pair.describe(others.both[1]), 0, local).ok());
  EXPECT_TRUE(!seen.ok() || equal(seen->bytes(), pattern(300'000)));
}

TEST_P(Views, CanBeReadAfterTheirOwnerHasLeft) {
  Pair pair(subject());
  Buffers buffers(pair, 300'000);
  buffers.fill(pattern(300'000));
  auto seen = view(pair, pair.describe(buffers.both[1]));
  if (!seen.ok()) GTEST_SKIP() << subject().name << " maps no memory";
  pair.server.endpoint->disconnect(pair.to_client);
  ASSERT_TRUE(pair.drive_until([&] { return !pair.client.seen.lost.empty(); }));
  EXPECT_TRUE(equal(seen->bytes(), pattern(300'000)));
  buffers.both[1].reset();
  pair.server.endpoint.reset();
  EXPECT_TRUE(equal(seen->bytes(), pattern(300'000)));
}

TEST_P(Views, KeepTheirContentWhenTheirPagesAreReleased) {
  Pair pair(subject());
  Buffers buffers(pair, 300'000);
  const auto all = pattern(300'000);
  buffers.fill(all);
  for (std::uint64_t offset : {0u, 1u, 4095u, 4096u, 299'999u, 300'000u}) {
    auto seen = view(pair, pair.describe(buffers.both[1]), offset);
    if (!seen.ok()) GTEST_SKIP() << subject().name << " maps no memory";
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(equal(seen->bytes(), std::span(all).subspan(offset))) << offset;
      seen->release_pages();
    }
  }
  EXPECT_TRUE(equal(buffers.both[1].bytes(), all));
  PeerView().release_pages();
}

INSTANTIATE_TEST_SUITE_P(Over, Bulk, testing::ValuesIn(subjects()), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Over, Views, testing::ValuesIn(subjects()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::conformance
