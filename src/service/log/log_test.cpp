// SPDX-License-Identifier: BSD-3-Clause
#include <service/log/log.hpp>
#include <service/log/testing/log_test_base.hpp>
#include <service/log/testing/memory_store.hpp>

#include <base/crc32c.hpp>

#include <algorithm>
#include <numeric>

namespace nessie::service::testing {
namespace {

constexpr std::uint64_t kSegment = 64 << 10;
const LogOptions kSmall{.block_bytes = 16 << 10};

Bytes some_data(std::size_t size, unsigned seed) {
  Bytes data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 31 + seed + (i >> 8));
  return data;
}

class LogTest : public LogTestBase {
 protected:
  std::unique_ptr<MemoryStore> store() { return std::make_unique<MemoryStore>(runtime(), disk_); }
  std::unique_ptr<Log> open(const LogOptions &options = kSmall) { return open_log(store(), options); }

  bool comes_to_hold(const Log &log, std::uint64_t most_bytes) {
    return nssi::testing::eventually([&] {
      runtime().sleep_until(Deadline::in(std::chrono::milliseconds(1)));
      return log.held_bytes() <= most_bytes;
    });
  }

  MemoryDisk disk_{kSegment};
};

TEST_F(LogTest, Records_AreFoundInTheirOrder_AsTheyWereAppended) {
  run([&] {
    auto log = open();
    std::vector<Kept> appended;
    for (unsigned i = 0; i < 300; ++i) {
      const auto head = some_data(i % 50, i), data = some_data(i * 7, i);
      appended.push_back(i % 10 == 3 ? append_bulk(*log, static_cast<std::uint16_t>(i), head, data)
                                     : append(*log, static_cast<std::uint16_t>(i), head, data));
    }
    EXPECT_EQ(replay(*log).records, appended);
    for (std::size_t i = 1; i < appended.size(); ++i) EXPECT_GE(appended[i].at.begin, appended[i - 1].at.end);
    EXPECT_EQ(replay(*log, appended[200].at.begin).records, std::vector(appended.begin() + 200, appended.end()));
    EXPECT_EQ(replay(*log).damage.size(), 0u);
    log.reset();
    log = open();
    const auto found = replay(*log);
    EXPECT_EQ(found.records, appended);
    EXPECT_EQ(found.damage.size(), 0u);
  });
}

TEST_F(LogTest, RecordsOfAllSizes_NoneAndTheMostIncluded_AreKept) {
  run([&] {
    auto log = open();
    std::vector<Kept> appended;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{4095},
                                   std::size_t{4096}, std::size_t{4097}, log->most_record_bytes()})
      appended.push_back(append(*log, 1, {}, some_data(size, 1)));
    appended.push_back(append(*log, 2, some_data(log->most_record_bytes(), 2), {}));
    appended.push_back(append_bulk(*log, 3, some_data(Log::kMostBulkHead, 3), some_data(log->most_bulk_bytes(), 3)));
    appended.push_back(append_bulk(*log, 4, {}, {}));
    EXPECT_EQ(replay(*log).records, appended);
    for (const auto &record : appended) {
      Bytes data(record.data.size());
      EXPECT_TRUE(log->read(record.at, data).ok()) << record.at.begin;
      EXPECT_EQ(data, record.data);
    }
    log.reset();
    log = open();
    EXPECT_EQ(replay(*log).records, appended);
  });
}

TEST_F(LogTest, WhatIsTooLarge_IsRefused_AndTheLogGoesOn) {
  run([&] {
    auto log = open();
    const auto data = some_data(log->most_record_bytes() + 1, 1);
    const std::span<const std::byte> part(data);
    EXPECT_EQ(log->append(1, {}, {&part, 1}).code(), Code::kTooLarge);
    EXPECT_EQ(log->append(1, some_data(Log::kMostBulkHead + 1, 1), *log->take_bulk(), 1).code(), Code::kTooLarge);
    EXPECT_EQ(log->append(1, {}, *log->take_bulk(), log->most_bulk_bytes() + 1).code(), Code::kTooLarge);
    const auto kept = append(*log, 2, {}, {});
    EXPECT_EQ(replay(*log).records, std::vector{kept});
  });
}

TEST_F(LogTest, DataInParts_AreOneRecord) {
  run([&] {
    auto log = open();
    const auto one = bytes_of("one"), two = bytes_of("two");
    const std::vector<std::span<const std::byte>> parts{one, {}, two};
    ASSERT_TRUE(log->append(1, bytes_of("head"), parts).ok());
    ASSERT_EQ(replay(*log).records.size(), 1u);
    EXPECT_EQ(replay(*log).records[0].data, bytes_of("onetwo"));
  });
}

TEST_F(LogTest, ASingleRecord_GoesAtOnce_AndManyShareAWriteAndASync) {
  run([&] {
    nssi::Event gate(runtime());
    bool is_open = false;
    auto slow = store();
    slow->on_write = [&](Lsn) { return is_open ? Status() : gate.wait(Deadline::in(std::chrono::seconds(20))); };
    auto log = open_log(std::move(slow), kSmall);
    (void)append(*log, 0, {}, {});
    ASSERT_TRUE(nssi::testing::eventually([&] {
      runtime().sleep_until(Deadline::in(std::chrono::milliseconds(1)));
      return disk_.writes == 1;
    }));
    runtime().spawn([&] {
      is_open = true;
      gate.set();
    });
    run_many(64, [&](std::size_t i) {
      const auto kept = append(*log, 1, {}, some_data(50, static_cast<unsigned>(i)));
      EXPECT_TRUE(log->await_synced(kept.at.end).ok());
    });
    EXPECT_LE(disk_.writes, 8u);
    EXPECT_LE(disk_.syncs, 8u);
    EXPECT_EQ(replay(*log).records.size(), 65u);
    EXPECT_TRUE(disk_.unsynced.empty());
  });
}

TEST_F(LogTest, WhatAwaitWrittenHasSaid_IsThereForWhoeverGoesOn) {
  run([&] {
    std::vector<Kept> appended;
    std::unique_ptr<Log> log = open();
    for (unsigned i = 0; i < 20; ++i) {
      appended.push_back(append(*log, 1, {}, some_data(3000, i)));
      ASSERT_TRUE(log->await_written(appended.back().at.end).ok());
      MemoryDisk killed(kSegment);  // what others see now
      killed.segments = disk_.segments;
      auto other = open_log(std::make_unique<MemoryStore>(runtime(), killed), kSmall);
      EXPECT_EQ(replay(*other).records, appended);
    }
  });
}

TEST_F(LogTest, WhoGoesOn_AppendsBehindWhatIsThere_AndPositionsNeverComeAgain) {
  run([&] {
    std::vector<Kept> appended;
    for (unsigned round = 0; round < 10; ++round) {
      auto log = open();
      EXPECT_EQ(replay(*log).records, appended);
      EXPECT_GE(log->end(), appended.empty() ? 0 : appended.back().at.end);
      for (unsigned i = 0; i < round; ++i) appended.push_back(append(*log, 1, {}, some_data(i * 1000, i)));
      ASSERT_TRUE(log->flush().ok());
    }
    EXPECT_TRUE(std::ranges::is_sorted(appended, {}, [](const Kept &kept) { return kept.at.begin; }));
  });
}

TEST_F(LogTest, OfBulkRecords_OnlyTheHeadsAreRead_WhereTheyAreSkimmed) {
  run([&] {
    auto log = open();
    for (unsigned i = 0; i < 20; ++i) {
      (void)append_bulk(*log, 1, some_data(10, i), some_data(12 << 10, i));
      (void)append(*log, 2, {}, some_data(100, i));
    }
    ASSERT_TRUE(log->flush().ok());
    log.reset();
    log = open();
    disk_.read_bytes = 0;
    std::uint64_t bulk_bytes = 0;
    const auto status = log->replay(0, {[&](const LogRecord &record) {
                                          if (record.kind == 1) bulk_bytes += record.data_bytes;
                                          EXPECT_EQ(record.data.size(), record.kind == 1 ? 0u : 100u);
                                          EXPECT_EQ(record.head.size(), record.kind == 1 ? 10u : 0u);
                                          return Status();
                                        },
                                        {},
                                        true});
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(bulk_bytes, 20u * (12 << 10));
    EXPECT_LE(disk_.read_bytes, 20u * (4096 + 8192));
  });
}

TEST_F(LogTest, AnErrorOfTheVisitor_EndsTheReplay) {
  run([&] {
    auto log = open();
    for (int i = 0; i < 3; ++i) (void)append(*log, 1, {}, {});
    int seen = 0;
    const auto status = log->replay(0, {[&](const LogRecord &) {
                                      return ++seen == 2 ? Status(Error{Code::kBusy, "enough"}) : Status();
                                    }});
    EXPECT_EQ(status.code(), Code::kBusy);
    EXPECT_EQ(seen, 2);
  });
}

TEST_F(LogTest, Segments_ComeBackWhenAllOfThemIsReleased_InAnyOrder) {
  run([&] {
    auto log = open();
    std::vector<Kept> appended;
    for (unsigned i = 0; i < 400; ++i) appended.push_back(append(*log, 1, {}, some_data(2000, i)));
    ASSERT_TRUE(log->flush().ok());
    const auto most = log->held_bytes();
    EXPECT_GT(most, 10 * kSegment);
    std::mt19937 random(7);
    std::shuffle(appended.begin(), appended.end(), random);
    for (std::size_t i = 0; i + 1 < appended.size(); ++i) {
      log->release(appended[i].at);
      if (i == 200) {
        const std::vector rest(appended.begin() + 201, appended.end());
        EXPECT_EQ(replay(*log).records.size(), rest.size());
      }
    }
    EXPECT_TRUE(comes_to_hold(*log, 2 * kSegment));
    EXPECT_EQ(disk_.syncs, 1u) << "before what is released goes";
    EXPECT_EQ(replay(*log).records, std::vector{appended.back()});
    log.reset();
    log = open();
    const auto found = replay(*log);
    EXPECT_EQ(found.damage.size(), 0u);
    EXPECT_TRUE(std::ranges::find(found.records, appended.back()) != found.records.end());
    log->release({0, log->end()});
    (void)append(*log, 1, {}, {});
    ASSERT_TRUE(log->flush().ok());
    EXPECT_TRUE(comes_to_hold(*log, kSegment));
  });
}

TEST_F(LogTest, BeforeASegmentGoes_AllThatLiesBeforeItsEndIsSynced) {
  run([&] {
    auto log = open();
    for (unsigned i = 0; i < 200; ++i) (void)append(*log, 1, {}, some_data(1000, i));
    ASSERT_TRUE(log->flush().ok());
    EXPECT_EQ(disk_.syncs, 0u);
    const auto held = log->held_bytes();
    log->release({kSegment, 2 * kSegment});
    ASSERT_TRUE(comes_to_hold(*log, held - kSegment));
    EXPECT_EQ(disk_.syncs, 1u);
    EXPECT_EQ(disk_.durable[0], disk_.segments[0]);
  });
}

TEST_F(LogTest, AFlippedBit_IsNamed_AndWhatLiesBehindIsRead) {
  run([&] {
    std::vector<Kept> appended;
    {
      auto log = open();
      for (unsigned i = 0; i < 100; ++i) appended.push_back(append(*log, 1, some_data(9, i), some_data(1000, i)));
      ASSERT_TRUE(log->await_synced(log->end()).ok());
      appended.push_back(append(*log, 1, {}, {}));  // that says so
      ASSERT_TRUE(log->flush().ok());
    }
    const auto whole = disk_.segments;
    for (Lsn at = 0; at < appended[90].at.end; at += 1777) {
      disk_.segments = whole;
      disk_.at(at) ^= std::byte{16};
      auto log = open();
      const auto found = replay(*log);
      std::size_t lost = 0;
      for (const auto &kept : appended) {
        const bool is_there = std::ranges::find(found.records, kept) != found.records.end();
        const bool is_named = std::ranges::any_of(found.damage, [&](const LogDamage &damage) {
          return damage.at.begin <= kept.at.begin && kept.at.end <= damage.at.end;
        });
        EXPECT_TRUE(is_there || is_named) << at << " " << kept.at.begin;
        lost += is_there ? 0 : 1;
      }
      EXPECT_LE(lost, 17u) << at;  // of a block
      EXPECT_EQ(found.records.size() + lost, appended.size()) << at;
      EXPECT_LE(found.damage.size(), 1u);
      if (!found.damage.empty()) {
        EXPECT_NE(found.damage[0].what.find(" of segment "), std::string::npos) << found.damage[0].what;
      }
    }
  });
}

TEST_F(LogTest, WhatLiesBehindAHoleWithinASegment_IsNotFound_AsItsBlocksMayBeMissing) {
  run([&] {
    std::vector<Kept> appended;
    {
      auto log = open();
      for (unsigned i = 0; i < 100; ++i) appended.push_back(append(*log, 1, {}, some_data(1000, i)));
      ASSERT_TRUE(log->flush().ok());
    }
    ASSERT_GE(disk_.segments.size(), 2u);
    disk_.segments[0].resize(kSegment / 2);
    const auto rest = std::ranges::find_if(appended, [](const Kept &kept) { return kept.at.end > kSegment / 2; });
    const auto found = replay(*open());
    EXPECT_EQ(found.damage.size(), 0u);
    EXPECT_LE(found.records.size(), static_cast<std::size_t>(rest - appended.begin()));
    EXPECT_TRUE(std::equal(found.records.begin(), found.records.end(), appended.begin()));
  });
}

TEST_F(LogTest, ReadingWhatIsNotThatRecord_IsRefused) {
  run([&] {
    auto log = open();
    const auto kept = append(*log, 1, {}, some_data(1000, 1)), other = append(*log, 1, {}, some_data(1000, 2));
    ASSERT_TRUE(log->flush().ok());
    Bytes data(1000), less(999);
    EXPECT_EQ(log->read(kept.at, less).code(), Code::kBadMessage);
    EXPECT_EQ(log->read({kept.at.begin + 8, kept.at.end}, data).code(), Code::kBadMessage);
    disk_.at(kept.at.begin + 500) ^= std::byte{1};
    EXPECT_EQ(log->read(kept.at, data).code(), Code::kBadMessage);
    EXPECT_TRUE(log->read(other.at, data).ok());
    EXPECT_EQ(data, other.data);
  });
}

TEST_F(LogTest, AnErrorOfTheDisk_IsToldToAll_AndTheLogTakesNothingMore) {
  run([&] {
    auto failing = store();
    bool fails = false;
    failing->on_write = [&](Lsn) {
      return fails ? Status(Error{Code::kIo, "cannot write /x/log.3: the disk has gone", Scope::kService, EIO})
                   : Status();
    };
    auto log = open_log(std::move(failing), kSmall);
    const auto kept = append(*log, 1, {}, {});
    ASSERT_TRUE(log->flush().ok());
    fails = true;
    run_many(20, [&](std::size_t i) {
      const auto lost = append(*log, 1, {}, some_data(100, static_cast<unsigned>(i)));
      const auto status = i % 2 == 0 ? log->await_written(lost.at.end) : log->await_synced(lost.at.end);
      ASSERT_EQ(status.code(), Code::kIo);
      EXPECT_EQ(status.error().cause, EIO);
    });
    fails = false;
    EXPECT_EQ(log->append(1, {}, {}).code(), Code::kIo);
    EXPECT_EQ(log->take_bulk().code(), Code::kIo);
    EXPECT_EQ(log->status().code(), Code::kIo);
    EXPECT_TRUE(log->await_written(kept.at.end).ok()) << "that was written";
    log.reset();
    log = open();
    EXPECT_EQ(replay(*log).records, std::vector{kept});
  });
}

TEST_F(LogTest, AnErrorOfASync_IsToldToAll) {
  run([&] {
    auto failing = store();
    failing->on_sync = [&] {
      return Status(Error{Code::kIo, "cannot bring /x/log.3 to the disk", Scope::kService, EIO});
    };
    auto log = open_log(std::move(failing), kSmall);
    run_many(20, [&](std::size_t) {
      const auto kept = append(*log, 1, {}, {});
      EXPECT_EQ(log->await_synced(kept.at.end).code(), Code::kIo);
    });
    EXPECT_EQ(log->status().code(), Code::kIo);
  });
}

TEST_F(LogTest, ADiskThatDoesNotAnswer_IsToldToAll_WhenTheLogHasNoMorePatience) {
  const LogOptions impatient{.block_bytes = 16 << 10, .most_blocks = 2, .patience = std::chrono::milliseconds(20)};
  for (const bool hangs_in_sync : {true, false, true}) {
    const auto gate = std::make_shared<nssi::Event>(runtime());  // of fibers that are left behind
    const auto hang = [gate] { return gate->wait(Deadline::in(std::chrono::seconds(20))); };
    run([&] {
      auto hanging = store();
      if (hangs_in_sync)
        hanging->on_sync = hang;
      else
        hanging->on_write = [hang](Lsn) { return hang(); };
      auto log = Log::open(runtime(), budget_, std::move(hanging), impatient);
      if (!log.ok()) {  // as there is something that its first sync is to cover
        EXPECT_EQ(log.code(), Code::kTimedOut);
        return gate->set();
      }
      run_many(20, [&](std::size_t) {
        const auto data = some_data(5000, 1);
        const std::span<const std::byte> part(data);
        const auto at = (*log)->append(1, {}, {&part, 1});
        const auto status = at.ok() ? (*log)->await_synced(at->end) : Status(at.error());
        EXPECT_EQ(status.code(), Code::kTimedOut) << status.error().to_string();
      });
      EXPECT_EQ((*log)->status().code(), Code::kTimedOut);
      log->reset();
      gate->set();
    });
  }
  run([&] { EXPECT_TRUE(Log::open(runtime(), budget_, store(), impatient).ok()); });
}

TEST_F(LogTest, Memory_IsOfItsAccount_AndGivenUpWhenAnotherPoolIsShort) {
  run([&] {
    auto log = open({.name = "of this log", .block_bytes = 16 << 10, .most_blocks = 4});
    for (unsigned i = 0; i < 200; ++i) (void)append(*log, 1, {}, some_data(5000, i));
    ASSERT_TRUE(log->flush().ok());
    ASSERT_EQ(budget_.usage().size(), 1u);
    EXPECT_EQ(budget_.usage()[0].name, "of this log");
    EXPECT_LE(budget_.usage()[0].high_bytes, 4u * (16 << 10));
    Budget small(64 << 10);
    auto other = Log::open(runtime(), small, store(), kSmall);
    ASSERT_TRUE(other.ok());
    Budget::Account pages(small, "pages");
    for (unsigned i = 0; i < 50; ++i) (void)append(**other, 1, {}, some_data(5000, i));
    ASSERT_TRUE((*other)->flush().ok());
    ASSERT_TRUE(pages.try_take(4 << 10));
    EXPECT_FALSE(pages.try_take(60 << 10));
    EXPECT_TRUE(pages.try_take(60 << 10));
    (void)append(**other, 1, {}, {});
    EXPECT_TRUE((*other)->flush().ok()) << "nobody starves";
  });
}

TEST_F(LogTest, BulkBlocksThatAreBeingFilled_DoNotKeepOthersFromBeingWritten) {
  run([&] {
    auto log = open({.block_bytes = 16 << 10, .most_blocks = 3});
    auto one = *log->take_bulk(), two = *log->take_bulk();
    std::vector<Kept> appended;
    for (unsigned i = 0; i < 20; ++i) appended.push_back(append(*log, 1, {}, some_data(5000, i)));
    EXPECT_EQ(replay(*log).records, appended);
  });
}

}  // namespace
}  // namespace nessie::service::testing
