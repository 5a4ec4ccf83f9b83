// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/shared_queue.hpp"

#include "nnti/conformance/tools_testing.hpp"
#include "nnti/transport/allocation.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace nnti::shm {
namespace {

/// A queue in memory that children share, and its reader.
template <std::uint64_t kEntries> struct QueueOf : testing::Test {
  static constexpr std::uint32_t kWriters = 16;
  SharedMemory memory = std::move(*make_shared_memory("queue", queue_bytes(kEntries), Peers::kMayWrite));
  SharedMemory table_memory = std::move(*make_shared_memory("table", sizeof(EndpointTable), Peers::kMayWrite));
  EndpointTable &table = *reinterpret_cast<EndpointTable *>(table_memory.mapping.base());
  Queue queue = queue_at(memory.mapping.base(), kEntries, table);
  QueueReader reader{queue};
  std::array<std::byte, kMaxInPlaceBytes> buffer;

  QueueOf() { table.queue_bound.store(kEntries / 2); }
  QueueWriter writer(std::uint32_t seat) { return QueueWriter(queue, seat, &table.lines[seat].starves); }
  static Outcome write(QueueWriter &writer, std::uint32_t value, std::size_t size = 4) {
    std::vector<std::byte> bytes(size);
    std::memcpy(bytes.data(), &value, std::min(size, sizeof value));
    return writer.write(Kind::kMessage, bytes);
  }
  std::uint32_t value() const {
    std::uint32_t value = 0;
    std::memcpy(&value, buffer.data(), sizeof value);
    return value;
  }
  void give_back() { table.queue_consumed.store(reader.next()); }
  void expect(std::uint32_t seat, std::uint32_t expected) {
    auto head = reader.look();
    ASSERT_EQ(head.look, QueueReader::Look::kPublished);
    ASSERT_EQ(head.seat, seat);
    ASSERT_TRUE(reader.read(buffer));
    ASSERT_EQ(value(), expected);
    give_back();
  }
  QueueReader::Look look() const { return reader.look().look; }
};
using SharedQueue = QueueOf<64>;
using SmallQueue = QueueOf<16>;

TEST_F(SharedQueue, IsEmptyAtFirst) { EXPECT_EQ(look(), QueueReader::Look::kEmpty); }

TEST_F(SharedQueue, GivesMessagesOfAllInTheOrderOfTheirClaims) {
  auto one = writer(1), two = writer(2);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(write(one, i, 4 + i % 109), Outcome::kSent);
    ASSERT_EQ(write(two, i, 4), Outcome::kSent);
    ASSERT_EQ(write(one, ~i, 112), Outcome::kSent);
    ASSERT_NO_FATAL_FAILURE(expect(1, i));
    ASSERT_NO_FATAL_FAILURE(expect(2, i));
    ASSERT_NO_FATAL_FAILURE(expect(1, ~i));
    ASSERT_EQ(look(), QueueReader::Look::kEmpty);
  }
}

TEST_F(SharedQueue, AWriterThatSleptForRoundsFindsTheTail) {
  auto busy = writer(1), late = writer(2);
  ASSERT_EQ(write(late, 0), Outcome::kSent);
  ASSERT_NO_FATAL_FAILURE(expect(2, 0));
  for (std::uint32_t i = 0; i < 1001; ++i) {
    ASSERT_EQ(write(busy, i), Outcome::kSent);
    ASSERT_NO_FATAL_FAILURE(expect(1, i));
  }
  ASSERT_EQ(write(late, 7), Outcome::kSent);
  ASSERT_NO_FATAL_FAILURE(expect(2, 7));
}

TEST_F(SharedQueue, AFullOneTakesNothingUntilEntriesAreGivenBack) {
  table.queue_bound.store(64);
  std::vector<QueueWriter> writers;
  for (std::uint32_t seat = 0; seat < 4; ++seat) writers.push_back(writer(seat));
  std::uint32_t written = 0;
  for (bool any = true; any;) {
    any = false;
    for (auto &one : writers)
      if (write(one, written) == Outcome::kSent) ++written, any = true;
  }
  EXPECT_EQ(written, 64u);
  EXPECT_EQ(queue.control->starving.load(), 1u);
  EXPECT_EQ(table.lines[2].starves.load(), 1u);
  EXPECT_FALSE(writers[2].has_new_credit());
  for (std::uint32_t i = 0; i < 64; ++i) ASSERT_NO_FATAL_FAILURE(expect(i % 4, i));
  EXPECT_TRUE(writers[2].has_new_credit());
  EXPECT_EQ(write(writers[2], 9), Outcome::kSent);
  EXPECT_EQ(table.lines[2].starves.load(), 0u);
  ASSERT_NO_FATAL_FAILURE(expect(2, 9));
}

TEST_F(SharedQueue, OneWriterTakesNoMoreThanItsBound) {
  for (std::uint64_t bound : {1u, 2u, 10u, 32u}) {
    table.queue_bound.store(bound);
    auto greedy = writer(1), modest = writer(2);
    std::uint32_t taken = 0;
    while (write(greedy, taken) == Outcome::kSent) ++taken;
    EXPECT_GE(taken, std::min<std::uint64_t>(bound, 32));
    EXPECT_LE(taken, bound + 2);
    EXPECT_EQ(write(modest, 1), Outcome::kSent) << bound;
    while (look() == QueueReader::Look::kPublished) ASSERT_TRUE(reader.read(buffer));
    give_back();
    EXPECT_EQ(write(greedy, 0), Outcome::kSent) << bound;
    ASSERT_TRUE(reader.read(buffer));
    give_back();
  }
}

TEST_F(SharedQueue, AnEntryWhoseWriterIsGoneIsSkippedAndUsedAgain) {
  auto dead = writer(1), alive = writer(2);
  std::uint64_t number = 0;
  ASSERT_EQ(dead.claim(number), Outcome::kSent);
  ASSERT_EQ(write(alive, 5), Outcome::kSent);
  auto head = reader.look();
  ASSERT_EQ(head.look, QueueReader::Look::kClaimed);
  ASSERT_EQ(head.seat, 1u);
  EXPECT_EQ(reader.end_of(1), 1u);
  EXPECT_EQ(reader.end_of(2), 2u);
  EXPECT_EQ(reader.end_of(3), 0u);
  reader.skip();
  ASSERT_NO_FATAL_FAILURE(expect(2, 5));
  for (std::uint32_t i = 0; i < 200; ++i) {
    ASSERT_EQ(write(alive, i), Outcome::kSent);
    ASSERT_NO_FATAL_FAILURE(expect(2, i));
  }
}

TEST_F(SharedQueue, GarbageIsFoundOut) {
  auto &state = EntryPlace::of(queue, 0).state;
  for (auto garbage :
       {~std::uint64_t{0}, std::uint64_t{2} << 32, EntryState::make(1, 1, 0), EntryState::make(1, 1, 3)}) {
    state.store(garbage);
    EXPECT_EQ(look(), QueueReader::Look::kBroken) << garbage;
  }
  state.store(EntryState::make(1, 1, EntryState::kPublished));
  for (std::uint64_t header :
       {std::uint64_t{4}, std::uint64_t{1} << 16 | 113, std::uint64_t{9} << 16,
        std::uint64_t{1} << 16 | std::uint64_t{40} << 24, std::uint64_t{1} << 16 | std::uint64_t{1} << 40}) {
    EntryPlace::of(queue, 0).header = header;
    EXPECT_FALSE(reader.read(buffer)) << header;
  }
}

TEST_F(SharedQueue, AReaderThatClaimsTheImpossibleIsFoundOut) {
  auto one = writer(1);
  ASSERT_EQ(write(one, 1), Outcome::kSent);
  table.queue_consumed.store(1'000'000);
  auto outcome = Outcome::kSent;
  for (int i = 0; i < 200 && outcome == Outcome::kSent; ++i) outcome = write(one, 1);
  EXPECT_EQ(outcome, Outcome::kBroken);
}

/// Reads until `done` says so, and checks that each writer's values come in order.
template <class Fixture> struct Collector {
  Fixture &fixture;
  std::array<std::uint32_t, Fixture::kWriters> expected{};
  std::array<bool, Fixture::kWriters> gone{};
  std::uint64_t skipped = 0;

  /// False: nothing there.
  bool step() {
    auto head = fixture.reader.look();
    if (head.look == QueueReader::Look::kEmpty) return false;
    if (head.look == QueueReader::Look::kClaimed) {
      if (!gone[head.seat]) return false;
      fixture.reader.skip();
      ++skipped;
    } else {
      EXPECT_EQ(head.look, QueueReader::Look::kPublished);
      EXPECT_TRUE(fixture.reader.read(fixture.buffer));
      EXPECT_EQ(fixture.value(), expected[head.seat]) << "of " << head.seat;
      expected[head.seat] = fixture.value() + 1;
    }
    fixture.give_back();
    return true;
  }
};

TEST_F(SmallQueue, ThreadsThatWriteAtOnceLoseAndDoubleNothing) {
  constexpr std::uint32_t kThreads = 4, kEach = 20'000;
  table.queue_bound.store(4);
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  for (std::uint32_t seat = 0; seat < kThreads; ++seat)
    threads.emplace_back([&, seat] {
      auto mine = writer(seat);
      for (std::uint32_t i = 0; i < kEach && !stop;)
        if (write(mine, i) == Outcome::kSent)
          ++i;
        else
          std::this_thread::yield();
    });
  Collector<SmallQueue> collector{*this};
  auto watchdog = std::chrono::steady_clock::now() + kWatchdog;
  std::uint64_t got = 0;
  while (got < std::uint64_t{kThreads} * kEach && std::chrono::steady_clock::now() < watchdog && !HasFailure())
    if (collector.step())
      ++got;
    else
      std::this_thread::yield();
  stop = true;
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(got, std::uint64_t{kThreads} * kEach);
}

/// Writes from 0 on until it is killed; half of the children stop themselves between claim and publication.
[[noreturn]] void write_until_killed(QueueWriter writer, unsigned seed) {
  std::mt19937 random(seed);
  auto last = seed % 2 == 0 ? random() % 300 : ~0u;
  for (std::uint32_t i = 0;;) {
    std::uint64_t number = 0;
    if (writer.claim(number) != Outcome::kSent) {
      ::sched_yield();
      continue;
    }
    if (i == last) ::raise(SIGKILL);
    auto &entry = EntryPlace::of(writer.queue(), number);
    entry.header = 4 | std::uint64_t{1} << 16;
    std::memcpy(entry.payload, &i, sizeof i);
    writer.publish(number);
    ++i;
  }
}

TEST_F(SharedQueue, ProcessesKilledAtAnyInstructionNeitherBlockNorCorruptIt) {
  std::mt19937 random(1);
  table.queue_bound.store(16);
  Collector<SharedQueue> collector{*this};
  auto survivor = writer(15);
  std::uint32_t sent = 0;
  for (unsigned round = 0; round < 60 && !HasFailure(); ++round) {
    std::uint32_t seat = round % 3;
    collector.expected[seat] = 0;
    collector.gone[seat] = false;
    auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      write_until_killed(writer(seat), round);
    }
    // Killed after some of its messages; it stops by itself in every second round.
    auto until = collector.expected[seat] + random() % 300;
    auto watchdog = std::chrono::steady_clock::now() + kWatchdog;
    bool ended = false;
    while (!ended && std::chrono::steady_clock::now() < watchdog) {
      if (write(survivor, sent) == Outcome::kSent) ++sent;
      while (collector.step()) {}
      ::sched_yield();
      if (round % 2 == 1 && collector.expected[seat] > until) ::kill(child, SIGKILL);
      ended = ::waitpid(child, nullptr, WNOHANG) == child;
    }
    if (!ended) ::kill(child, SIGKILL), ::waitpid(child, nullptr, 0);
    ASSERT_TRUE(ended) << "in round " << round;
    collector.gone[seat] = true;
    while (collector.step()) {}
    ASSERT_EQ(reader.end_of(seat), reader.next());
    ASSERT_EQ(look(), QueueReader::Look::kEmpty);
    ASSERT_EQ(collector.expected[15], sent) << "the survivor's messages came all";
  }
  EXPECT_GE(collector.skipped, 30u) << "every second child died between claim and publication";
}

}  // namespace
}  // namespace nnti::shm
