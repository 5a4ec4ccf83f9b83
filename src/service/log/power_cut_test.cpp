// SPDX-License-Identifier: BSD-3-Clause
// Logs that are cut off by power failures and kills, again and again, at any moment.
#include <service/log/log.hpp>
#include <service/log/testing/log_test_base.hpp>
#include <service/log/testing/memory_store.hpp>

#include <algorithm>
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
  void cut();
  void compare(const Found &found);
  std::vector<Kept> without_released(std::span<const Kept> records) const {
    std::vector<Kept> rest;
    for (const auto &kept : records)
      if (!expected_.released.contains(kept.at.begin)) rest.push_back(kept);
    return rest;
  }
  unsigned one_of(unsigned count) { return static_cast<unsigned>(random_() % count); }

  std::mt19937 random_{GetParam()};
  MemoryDisk disk_;
  std::optional<MemoryDisk> left_;  ///< after the cut
  Expectation expected_;
  bool was_killed_ = false;
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
  was_killed_ = one_of(3) == 0;
  left_ = was_killed_ ? disk_.after_kill(random_) : disk_.after_power_cut(random_);
}

/// By three fibers at once; what they do after the cut is not seen.
void LogPowerCut::use_until_cut(Log &log) {
  auto left = one_of(120);
  run_many(3, [&](std::size_t) {
    while (!left_) {
      if (left-- == 0) return cut();
      const auto what = one_of(10);
      if (what < 7) append_one(log);
      if (what == 7) release_one(log);
      if (what > 7) acknowledge(log);
      if (one_of(3) == 0) runtime().sleep_until(Deadline::now());
    }
  });
}

void LogPowerCut::compare(const Found &found) {
  EXPECT_TRUE(found.damage.empty()) << found.damage[0].what;
  const auto acknowledged = was_killed_ ? expected_.written : expected_.synced;
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
  expected_.written = std::min(expected_.written, count);
}

TEST_P(LogPowerCut, WhatWasAcknowledgedIsThere_AndOfTheRestAPrefix_AgainAndAgain) {
  run([&] {
    for (int round = 0; round < 8 && !HasFailure(); ++round) {
      auto log = open_log(std::make_unique<MemoryStore>(runtime(), disk_), kTinyBlocks);
      compare(replay(*log));
      left_.reset();
      use_until_cut(*log);
      ASSERT_TRUE(log->flush().ok());
      log.reset();
      disk_ = *std::move(left_);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Random, LogPowerCut, ::testing::Range(1u, 151u));

}  // namespace
}  // namespace nessie::service::testing
