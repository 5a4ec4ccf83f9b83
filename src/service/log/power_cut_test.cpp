// SPDX-License-Identifier: BSD-3-Clause
// Logs that are cut off by power failures and kills, again and again, at any moment. With NESSIE_TEST_SWEEP=1 many more
// of them.
#include <service/log/log.hpp>
#include <service/log/testing/log_test_base.hpp>
#include <service/log/testing/memory_store.hpp>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>

namespace nessie::service::testing {
namespace {

const LogOptions kTinyBlocks{.block_bytes = 16 << 10, .most_blocks = 5};

/// What a log must have.
struct Expectation {
  std::vector<Kept> records;
  std::size_t synced = 0;   ///< so many of them, from the first on
  std::size_t written = 0;  ///< likewise
  std::set<Lsn> released;
};

class LogPowerCut : public LogTestBase, public ::testing::WithParamInterface<unsigned> {
 protected:
  void use_until_cut(Log &log);
  void append_one(Log &log);
  void acknowledge(Log &log);
  void release_one(Log &log);
  void read_meanwhile(Log &log);
  void cut();
  std::unique_ptr<Log> open();
  void compare(const Found &found);
  std::vector<Kept> without_released(std::span<const Kept> records) const {
    std::vector<Kept> rest;
    for (const auto &kept : records)
      if (!expected_.released.contains(kept.at.begin)) rest.push_back(kept);
    return rest;
  }
  /// Whose writes end in any order.
  std::unique_ptr<MemoryStore> slow_store() {
    auto store = std::make_unique<MemoryStore>(runtime(), disk_);
    store->on_sync = [this] { return pass_turns(); };
    store->on_write = [this](Lsn) { return pass_turns(); };
    return store;
  }
  Status pass_turns() {
    if (until_cut_in_opening_ > 0 && --until_cut_in_opening_ == 0) cut();
    for (auto turns = one_of(6); turns != 0; --turns) runtime().sleep_until(Deadline::now());
    return {};
  }
  unsigned one_of(unsigned count) { return static_cast<unsigned>(random_() % count); }

  std::mt19937 random_{GetParam()};
  MemoryDisk disk_;
  std::optional<MemoryDisk> left_;  ///< after the cut
  Expectation expected_;
  bool has_lost_power_ = false;        ///< since it was open
  unsigned until_cut_in_opening_ = 0;  ///< so many writes and syncs; 0: it is not cut
};

void LogPowerCut::append_one(Log &log) {
  Bytes data(one_of(4) == 0 ? one_of(12000) : one_of(600));
  for (auto &byte : data) byte = static_cast<std::byte>(random_());
  const auto kind = static_cast<std::uint16_t>(one_of(1000));
  if (one_of(4) != 0) {
    const std::span<const std::byte> part(data);
    const auto at = log.append(kind, bytes_of("head"), {&part, 1});
    ASSERT_TRUE(at.ok());
    if (!left_) expected_.records.push_back({kind, *at, bytes_of("head"), data});
    return;
  }
  auto bulk = log.take_bulk();
  ASSERT_TRUE(bulk.ok());
  if (!data.empty()) std::memcpy(bulk->data(), data.data(), data.size());
  const auto at = log.append(kind, bytes_of("bulk"), *std::move(bulk), data.size());
  ASSERT_TRUE(at.ok());
  if (!left_) expected_.records.push_back({kind, *at, bytes_of("bulk"), data});
}

void LogPowerCut::acknowledge(Log &log) {
  const auto count = expected_.records.size();
  const auto until = count == 0 ? 0 : expected_.records.back().at.end;
  if (one_of(2) == 0) {
    ASSERT_TRUE(log.await_written(until).ok());
    if (!left_) expected_.written = std::max(expected_.written, count);
    return;
  }
  ASSERT_TRUE(log.await_synced(until).ok());
  if (left_) return;
  expected_.written = std::max(expected_.written, count);
  expected_.synced = std::max(expected_.synced, count);
}

void LogPowerCut::release_one(Log &log) {
  if (expected_.records.empty() || left_) return;
  const auto first = one_of(2) == 0 ? 0 : one_of(static_cast<unsigned>(expected_.records.size()));
  for (auto i = first; i < expected_.records.size() && i < first + 8; ++i) {
    expected_.released.insert(expected_.records[i].at.begin);
    log.release(expected_.records[i].at);
  }
}

void LogPowerCut::cut() {
  const bool is_kill = one_of(3) == 0;
  has_lost_power_ = has_lost_power_ || !is_kill;
  left_ = is_kill ? disk_.after_kill(random_) : disk_.after_power_cut(random_);
}

/// It may be cut off while it is opened, and is then opened again.
std::unique_ptr<Log> LogPowerCut::open() {
  until_cut_in_opening_ = one_of(6);
  auto log = open_log(slow_store(), kTinyBlocks);
  until_cut_in_opening_ = 0;
  if (!left_) return log;
  log.reset();
  disk_ = *std::exchange(left_, std::nullopt);
  return open();
}

/// While others append, and release.
void LogPowerCut::read_meanwhile(Log &log) {
  Lsn end = 0;
  const auto status = log.replay(0, {[&](const LogRecord &record) {
                                       EXPECT_GE(record.at.begin, end);
                                       end = record.at.end;
                                       return pass_turns();
                                     },
                                     [](const LogDamage &damage) { ADD_FAILURE() << damage.what; }});
  EXPECT_TRUE(status.ok());
}

/// By three fibers at once; what they do after the cut is not seen.
void LogPowerCut::use_until_cut(Log &log) {
  auto left = one_of(120);
  run_many(3, [&](std::size_t) {
    while (!left_) {
      if (left-- == 0) return cut();
      const auto what = one_of(10);
      if (one_of(30) == 0) read_meanwhile(log);
      if (what < 7) append_one(log);
      if (what == 7) release_one(log);
      if (what > 7) acknowledge(log);
      if (one_of(3) == 0) runtime().sleep_until(Deadline::now());
    }
  });
}

void LogPowerCut::compare(const Found &found) {
  EXPECT_TRUE(found.damage.empty()) << found.damage[0].what;
  const auto acknowledged = has_lost_power_ ? expected_.synced : expected_.written;
  const auto all = without_released(expected_.records), those = without_released(found.records);
  EXPECT_GE(those.size(), without_released(std::span(expected_.records).first(acknowledged)).size());
  ASSERT_LE(those.size(), all.size());
  EXPECT_TRUE(std::equal(those.begin(), those.end(), all.begin()));
  std::size_t count = acknowledged;
  for (const auto &kept : found.records) {
    const auto same = std::ranges::find(expected_.records, kept);
    ASSERT_NE(same, expected_.records.end()) << "nobody appended that";
    count = std::max(count, static_cast<std::size_t>(same - expected_.records.begin()) + 1);
  }
  expected_.records.resize(count);
  expected_.written = expected_.synced = count;
  has_lost_power_ = false;
}

unsigned count_of_logs() {
  const auto *sweep = std::getenv("NESSIE_TEST_SWEEP");
  return sweep != nullptr && std::string_view(sweep) == "1" ? 6000 : 200;
}

TEST_P(LogPowerCut, WhatWasAcknowledgedIsThere_AndOfTheRestAPrefix_AgainAndAgain) {
  run([&] {
    for (int round = 0; round < 8 && !HasFailure(); ++round) {
      auto log = open();
      compare(replay(*log));
      use_until_cut(*log);
      ASSERT_TRUE(log->flush().ok());
      log.reset();
      disk_ = *std::exchange(left_, std::nullopt);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Random, LogPowerCut, ::testing::Range(1u, 1 + count_of_logs()));

}  // namespace
}  // namespace nessie::service::testing
