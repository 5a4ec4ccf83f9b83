// SPDX-License-Identifier: BSD-3-Clause
// Through the transport, over an adapter that looks at every transfer: what is registered, for how long, and that no
// transfer ever uses a stale translation, whatever happens to the memory between two of them.
#include "nnti/conformance/conformance.hpp"
#include "nnti/registration_cache/child_testing.hpp"
#include "nnti/transports/ofi/adapter_test.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace nnti::ofi {
namespace {

using conformance::Bytes;
using conformance::Pair;
using conformance::pattern;
using conformance::Settings;
using test::Adapter;

constexpr std::size_t kBytes = 1 << 17;  // larger than what goes in frames

const conformance::Subject &subject() {
  static const conformance::Subject only = {
      "ofi_mr_local", "ofi", {{"nnti.ofi.address", "127.0.0.1"}, {"nnti.ofi.mr_local", "on"}}, false};
  return only;
}

std::byte *map(std::byte *at, int flags = 0) {
  void *memory = ::mmap(at, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte *>(memory);
}

/// Mapped memory whose pages can be changed beneath their addresses.
class Mapped {
 public:
  /// The first ones replace pages at once. The others leave a hole for a moment, which another thread's memory may
  /// fill.
  enum Change { kMapOver, kMoveOther, kDontNeed, kWithoutHole, kUnmapAndMap = kWithoutHole, kMoveAwayAndMap, kChanges };

  Mapped() : bytes_(map(nullptr), kBytes) {}
  ~Mapped() { ::munmap(bytes_.data(), kBytes); }
  Mapped(const Mapped &) = delete;
  Mapped &operator=(const Mapped &) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

  void change(Change how) const {
    switch (how) {
      case kMapOver: map(at(), MAP_FIXED); return;
      case kUnmapAndMap:
        ::munmap(at(), kBytes);
        ASSERT_NE(map(at(), MAP_FIXED), nullptr);
        return;
      case kMoveAwayAndMap: {
        void *moved = ::mremap(at(), kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, map(nullptr));
        ASSERT_NE(moved, MAP_FAILED);
        ASSERT_NE(map(at(), MAP_FIXED), nullptr);
        ::munmap(moved, kBytes);
        return;
      }
      case kMoveOther:
        ASSERT_NE(::mremap(map(nullptr), kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, at()), MAP_FAILED);
        return;
      case kDontNeed: ::madvise(at(), kBytes, MADV_DONTNEED); return;
      case kChanges: return;
    }
  }

 private:
  std::byte *at() const { return bytes_.data(); }
  std::span<std::byte> bytes_;
};

RegisteredBuffer registered(conformance::Node &node, std::span<std::byte> memory, Rights rights = Rights::kReadWrite) {
  auto buffer = node.endpoint->register_memory(memory, rights);
  EXPECT_TRUE(buffer.ok()) << buffer.error().to_string();
  return buffer.ok() ? std::move(*buffer) : RegisteredBuffer();
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

/// Puts into the server's buffer, and gets from it; both must move what is there.
void put_and_get(Pair &pair, const RemoteBuffer &remote, std::span<std::byte> memory, unsigned seed) {
  const auto wanted = pattern(kBytes, seed);
  ASSERT_TRUE(pair.put(remote, 0, wanted).ok());
  ASSERT_TRUE(equal(memory, wanted));
  std::ranges::copy(pattern(kBytes, seed + 1), memory.begin());
  Bytes local(kBytes);
  ASSERT_TRUE(pair.get(remote, 0, local).ok());
  ASSERT_TRUE(equal(local, memory));
}

class OfiRegistrations : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    adapter_ = Adapter::install(reason);
    if (adapter_ == nullptr) GTEST_SKIP() << reason;
    adapter_->reset();
  }
  void TearDown() override {
    if (adapter_ != nullptr) expect_no_harm();
  }
  void expect_no_harm() {
    const auto seen = adapter_->seen();
    EXPECT_EQ(seen.stale, 0u) << "of " << seen.transfers << " transfers";
    EXPECT_EQ(seen.unregistered, 0u);
    EXPECT_EQ(seen.ended_too_early, 0u);
  }
  Adapter *adapter_ = nullptr;
};

TEST_F(OfiRegistrations, MemoryThatStaysIsRegisteredOnce) {
  Pair pair(subject());
  Mapped memory;
  const auto buffer = registered(pair.server, memory.bytes());
  for (unsigned i = 0; i < 10; ++i) put_and_get(pair, pair.describe(buffer), memory.bytes(), i);
  EXPECT_EQ(adapter_->seen().local_made, 1u);
  EXPECT_EQ(adapter_->seen().transfers, 20u);
  EXPECT_GT(adapter_->seen().frames, 0u);
}

TEST_F(OfiRegistrations, OutliveTheBufferTheyWereMadeFor) {
  Pair pair(subject());
  Mapped memory;
  for (unsigned i = 0; i < 10; ++i) {
    const auto buffer = registered(pair.server, memory.bytes());
    put_and_get(pair, pair.describe(buffer), memory.bytes(), i);
  }
  EXPECT_EQ(adapter_->seen().local_made, 1u);
}

TEST_F(OfiRegistrations, ServeAllEndpointsOfTheProcess) {
  Mapped memory;
  Pair first(subject()), second(subject());
  for (auto *pair : {&first, &second}) {
    const auto buffer = registered(pair->server, memory.bytes());
    put_and_get(*pair, pair->describe(buffer), memory.bytes(), 7);
  }
  EXPECT_EQ(adapter_->seen().local_made, 1u);
}

TEST_F(OfiRegistrations, WhoseKeysPeersGet_AreMadeForOneTransferAndDieWithIt) {
  Pair pair(subject());
  Mapped memory;
  auto local = pattern(kBytes);
  const auto buffer = registered(pair.server, memory.bytes());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pair.put(pair.describe(buffer), 0, local).ok());
    EXPECT_EQ(adapter_->exposed_alive(), 0u);
  }
  EXPECT_EQ(adapter_->seen().exposed_made, 10u);
  EXPECT_EQ(adapter_->seen().keys.size(), 10u);
}

TEST_F(OfiRegistrations, OfChangedMemoryAreNotUsedAgain) {
  Pair pair(subject());
  for (int change = 0; change < Mapped::kChanges; ++change) {
    SCOPED_TRACE(change);
    Mapped memory;
    const auto buffer = registered(pair.server, memory.bytes());
    for (unsigned i = 0; i < 4; ++i) {
      put_and_get(pair, pair.describe(buffer), memory.bytes(), i);
      memory.change(static_cast<Mapped::Change>(change));
    }
    put_and_get(pair, pair.describe(buffer), memory.bytes(), 9);
  }
  EXPECT_GE(adapter_->seen().local_made, 5u * Mapped::kChanges);
}

TEST_F(OfiRegistrations, OfMemoryAtTheSameAddressThatTheInitiatorMapsAnewAreItsOwn) {
  Pair pair(subject());
  Mapped memory, local;
  const auto buffer = registered(pair.server, memory.bytes());
  for (int change = 0; change < Mapped::kChanges; ++change) {
    const auto wanted = pattern(kBytes, static_cast<unsigned>(change));
    std::ranges::copy(wanted, local.bytes().begin());
    ASSERT_TRUE(pair.put(pair.describe(buffer), 0, local.bytes()).ok());
    EXPECT_TRUE(equal(memory.bytes(), wanted));
    local.change(static_cast<Mapped::Change>(change));
    ASSERT_TRUE(pair.get(pair.describe(buffer), 0, local.bytes()).ok());
    EXPECT_TRUE(equal(local.bytes(), wanted));
  }
}

TEST_F(OfiRegistrations, OfMemoryThatIsGoneEndWhenTheEndpointIsIdle) {
  Pair pair(subject());
  auto memory = std::make_unique<Mapped>();
  auto buffer = registered(pair.server, memory->bytes());
  put_and_get(pair, pair.describe(buffer), memory->bytes(), 1);
  buffer.reset();
  EXPECT_EQ(adapter_->local_alive(), 1u);
  memory.reset();
  EXPECT_TRUE(conformance::drive({&pair.server}, [&] { return adapter_->local_alive() == 0; }));
}

TEST_F(OfiRegistrations, AreBoundedByTheSettings) {
  Pair pair(subject(), {{"nnti.registration_cache.regions", "2"}});
  std::vector<std::unique_ptr<Mapped>> memories(6);
  for (auto &memory : memories) {
    memory = std::make_unique<Mapped>();
    const auto buffer = registered(pair.server, memory->bytes());
    put_and_get(pair, pair.describe(buffer), memory->bytes(), 1);
  }
  EXPECT_LE(adapter_->local_alive(), 2u);
}

TEST_F(OfiRegistrations, LastForOneTransferWhereTheCacheIsOff) {
  Pair pair(subject(), {{"nnti.registration_cache", "off"}});
  Mapped memory;
  const auto buffer = registered(pair.server, memory.bytes());
  EXPECT_EQ(adapter_->seen().local_made, 0u);
  for (unsigned i = 0; i < 3; ++i) {
    put_and_get(pair, pair.describe(buffer), memory.bytes(), i);
    memory.change(Mapped::kMapOver);
  }
  EXPECT_EQ(adapter_->seen().local_made, 6u);
  EXPECT_EQ(adapter_->local_alive(), 0u);
}

TEST_F(OfiRegistrations, OfMemoryThatPeersOnlyReadAskForNoRightToWriteIt) {
  Pair pair(subject());
  Mapped memory;
  std::ranges::copy(pattern(kBytes), memory.bytes().begin());
  const auto readable = registered(pair.server, memory.bytes(), Rights::kRemoteRead);
  const auto writable = registered(pair.server, memory.bytes(), Rights::kRemoteWrite);
  Bytes local(kBytes);
  ASSERT_TRUE(pair.get(pair.describe(readable), 0, local).ok());
  EXPECT_EQ(adapter_->seen().accesses, std::set<std::uint64_t>{FI_WRITE});
  ASSERT_TRUE(pair.put(pair.describe(writable), 0, local).ok());
  EXPECT_EQ(adapter_->seen().accesses, (std::set<std::uint64_t>{FI_READ, FI_WRITE}));
}

/// One pair of endpoints, and memory of both sides that changes at random.
void work(unsigned seed, int turns, unsigned changes) {
  std::minstd_rand random(seed);
  Pair pair(subject());
  Mapped memories[3];
  std::vector<RegisteredBuffer> buffers;
  for (auto &memory : memories) buffers.push_back(registered(pair.server, memory.bytes()));
  for (int turn = 0; turn < turns; ++turn) {
    const auto which = random() % std::size(memories);
    put_and_get(pair, pair.describe(buffers[which]), memories[which].bytes(), seed + static_cast<unsigned>(turn));
    if (testing::Test::HasFatalFailure()) return;
    if (random() % 2 == 0) memories[which].change(static_cast<Mapped::Change>(random() % changes));
    if (random() % 8 == 0) buffers[which] = registered(pair.server, memories[which].bytes());
  }
}

constexpr int kTurns = conformance::kSanitized ? 10 : 40;

TEST_F(OfiRegistrations, AreNeverStaleInSeveralThreads) {
  std::vector<std::thread> threads;
  for (unsigned seed : {100u, 200u, 300u}) threads.emplace_back([seed] { work(seed, kTurns, Mapped::kWithoutHole); });
  for (auto &thread : threads) thread.join();
  const auto seen = adapter_->seen();
  EXPECT_GE(seen.transfers, 3u * 2 * kTurns);
  EXPECT_LT(seen.local_made, seen.transfers);
}

/// The child's own endpoints, over memory that it has from its parent.
int work_in_child(const Mapped &inherited) {
  std::string reason;
  auto *adapter = Adapter::install_in_child(reason);
  if (adapter == nullptr) return 1;
  {
    Pair pair(subject());
    const auto buffer = registered(pair.server, inherited.bytes());
    for (unsigned i = 0; i < 4; ++i) {
      put_and_get(pair, pair.describe(buffer), inherited.bytes(), 50 + i);
      inherited.change(static_cast<Mapped::Change>(i));
    }
  }
  const auto seen = adapter->seen();
  if (testing::Test::HasFailure()) return 2;
  return seen.stale + seen.unregistered + seen.ended_too_early == 0 && seen.transfers == 8 ? 0 : 3;
}

TEST_F(OfiRegistrations, AreNeverStaleAfterForkOnEitherSide) {
  Pair pair(subject());
  Mapped memory;
  const auto buffer = registered(pair.server, memory.bytes());
  for (unsigned round = 0; round < 3; ++round) {
    put_and_get(pair, pair.describe(buffer), memory.bytes(), round);
    const auto child = nnti::test::fork_child([&] { return work_in_child(memory); });
    ASSERT_GT(child.process, 0);
    put_and_get(pair, pair.describe(buffer), memory.bytes(), 10 + round);  // breaks copy-on-write
    memory.change(Mapped::kUnmapAndMap);
    put_and_get(pair, pair.describe(buffer), memory.bytes(), 20 + round);
    EXPECT_EQ(nnti::test::reap(child), 0);
  }
}

/// The adapter sees what it is there to see.
TEST_F(OfiRegistrations, ThatAreStaleWouldBeFound) {
  std::string reason;
  auto witness = nnti::test::make_pinning_witness(reason, false);
  ASSERT_NE(witness, nullptr) << reason;
  for (int change = 0; change < Mapped::kChanges; ++change) {
    Mapped memory;
    std::ranges::copy(pattern(kBytes), memory.bytes().begin());
    const auto range = pages_of(reinterpret_cast<std::uintptr_t>(memory.bytes().data()), kBytes);
    auto pinned = witness->register_pages(range, 0);
    ASSERT_TRUE(pinned.ok());
    EXPECT_TRUE(witness->agrees(**pinned, memory.bytes()));
    memory.change(static_cast<Mapped::Change>(change));
    EXPECT_FALSE(witness->agrees(**pinned, memory.bytes())) << change;
  }
}

}  // namespace
}  // namespace nnti::ofi
