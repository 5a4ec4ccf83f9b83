// SPDX-License-Identifier: BSD-3-Clause
// That costs at servers grow with what is put and got, and not with products of it: operations are counted, not timed.
#include <services/streams/server/account.hpp>
#include <services/streams/server/shelf.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace streams {
namespace {

/// A cube that is put in cubes of 4 x 4 x 4 elements, so many in each dimension.
struct Cubes {
  std::int64_t side;
  std::int64_t count() const { return side * side * side; }
  VariableArgs variable() const {
    VariableArgs variable;
    variable.name = "T";
    variable.type = ElementType::kDouble;
    variable.shape = {4 * side, 4 * side, 4 * side};
    return variable;
  }
  BoxArgs box(std::int64_t i) const { return {{i / (side * side) * 4, i / side % side * 4, i % side * 4}, {4, 4, 4}}; }
};

double n_log_n_squared(std::int64_t n) {
  const auto count = static_cast<double>(n);
  return count * std::log2(count) * std::log2(count);
}

Part part_of(const Cubes &cubes, std::int64_t first, std::int64_t behind) {
  Part part;
  for (auto i = first; i < behind; ++i) part.blocks.push_back({0, cubes.box(i), 0});
  return part;
}

Seat &sit(Shelf &shelf, const Cubes &cubes, std::int64_t rank, std::int64_t size) {
  auto &seat = shelf.make_seat(static_cast<Key>(rank + 1), static_cast<std::uint32_t>(rank),
                               static_cast<std::uint32_t>(size), Lasting::kInMemory);
  seat.variables = {cubes.variable()};
  return seat;
}

double comparisons_of(const Shelf &shelf) {
  return static_cast<double>(shelf.find(0, "T")->blocks.index().comparisons());
}

TEST(Shelf, ManyWriters_EachComparedWithFewOthers) {
  const Cubes cubes{16};
  Shelf shelf(1);
  for (std::int64_t rank = 0; rank < cubes.count(); ++rank) sit(shelf, cubes, rank, cubes.count());
  for (std::int64_t rank = 0; rank < cubes.count(); ++rank) {
    auto &seat = *shelf.find_seat(static_cast<Key>(rank + 1));
    EXPECT_EQ(shelf.is_awaited(seat), rank > 0);
    seat.parts.emplace(0, part_of(cubes, rank, rank + 1));
    ASSERT_TRUE(shelf.end_step(seat).ok());
    ASSERT_EQ(shelf.is_due(0), rank + 1 == cubes.count());
  }
  EXPECT_LT(comparisons_of(shelf), n_log_n_squared(cubes.count()));
  auto &late = sit(shelf, cubes, cubes.count(), cubes.count());
  late.parts.emplace(0, part_of(cubes, 77, 78));
  EXPECT_EQ(shelf.end_step(late).code(), Code::kInvalidArgument);
}

TEST(Shelf, OneWriterOfManyBoxes_EachComparedWithFewOthers) {
  const Cubes cubes{22};
  Shelf shelf(1);
  auto &seat = sit(shelf, cubes, 0, 1);
  seat.parts.emplace(0, part_of(cubes, 0, cubes.count() / 2));
  seat.parts.emplace(1, part_of(cubes, cubes.count() / 2, cubes.count()));
  ASSERT_TRUE(shelf.end_step(seat).ok());
  const auto &kept = *shelf.find(0, "T");
  EXPECT_EQ(kept.elements, elements_of(cubes.variable().shape));
  const auto before = comparisons_of(shelf);
  EXPECT_EQ(kept.blocks.in({{40, 40, 40}, {4, 4, 8}}).size(), 2u);
  EXPECT_LT(comparisons_of(shelf) - before, n_log_n_squared(cubes.count()) / 1000);
  seat.parts.emplace(0, part_of(cubes, 5, 7));
  seat.parts.emplace(1, part_of(cubes, 6, 8));
  EXPECT_EQ(shelf.end_step(seat).code(), Code::kOutOfRange);  // one of its own
}

StepReport report_of(const Cubes &cubes, std::uint32_t server, std::uint32_t servers) {
  StepReport report;
  report.server = server;
  report.group = 1;
  report.writers = servers;
  report.ended = 1;
  report.bytes = 1;
  auto &told = report.variables.emplace_back();
  told.variable = cubes.variable();
  for (std::int64_t i = server; i < cubes.count(); i += servers) told.boxes.push_back(cubes.box(i));
  return report;
}

TEST(Account, BoxesOfSeveralServers_AreComparedWithEachOther) {
  const Cubes cubes{16};
  for (const bool overlaps : {false, true}) {
    Account account(1, "flow", Lasting::kInMemory, 4);
    account.begin_group(4, 0);
    for (std::uint32_t server = 0; server < 3; ++server) {
      ASSERT_TRUE(account.take(report_of(cubes, server, 4)).ok());
      ASSERT_TRUE(account.take(report_of(cubes, server, 4)).ok());  // once more, as its answer was lost
    }
    EXPECT_EQ(account.complete(), 0u);
    auto last = report_of(cubes, 3, 4);
    if (overlaps) last.variables.front().boxes.back() = cubes.box(0);
    EXPECT_EQ(account.take(last).code(), overlaps ? Code::kInvalidArgument : Code::kOk);
    EXPECT_EQ(account.complete(), overlaps ? 0u : 1u);
    EXPECT_EQ(account.why_interrupted().empty(), !overlaps);
  }
}

TEST(Account, WhatComesOfWritersBeforeTheseDoesNotCount) {
  Account account(1, "flow", Lasting::kInMemory, 2);
  account.begin_group(2, 0);
  const Cubes cubes{2};
  ASSERT_TRUE(account.take(report_of(cubes, 0, 2)).ok());
  account.interrupt("rank 1 has died");
  account.begin_group(2, 0);
  for (std::uint32_t server : {0, 1}) {
    auto report = report_of(cubes, server, 2);
    ASSERT_TRUE(account.take(report).ok());  // of those before
    EXPECT_EQ(account.complete(), 0u);
    report.group = 2;
    ASSERT_TRUE(account.take(report).ok());
  }
  EXPECT_EQ(account.complete(), 1u);
}

StepReport report_of(std::uint64_t step) {
  StepReport report;
  report.group = 1;
  report.step = step;
  report.writers = report.ended = 1;
  report.bytes = 10;
  return report;
}

ReaderArgs reader_of(Key key, Key group, std::uint32_t rank, std::uint32_t size) {
  ReaderArgs args;
  args.reader = key;
  args.group = group;
  args.rank = rank;
  args.size = size;
  return args;
}

TEST(Account, WhatHasToStay_IsWhatTheSlowestOfManyReadersNeeds) {
  constexpr std::uint32_t kGroups = 8, kRanks = 32;
  constexpr std::uint64_t kSteps = 200;
  Account account(1, "flow", Lasting::kInMemory, 1);
  account.begin_group(1, 0);
  std::vector<std::uint64_t> ended(kGroups * kRanks, 0);
  for (std::uint32_t i = 0; i < ended.size(); ++i)
    ASSERT_TRUE(account.seat_reader(reader_of(i + 1, i / kRanks + 1, i % kRanks, kRanks), {}, {}).ok());
  for (std::uint64_t step = 0; step < kSteps; ++step) { ASSERT_TRUE(account.take(report_of(step)).ok()); }
  std::minstd_rand random(5);
  while (account.has_groups()) {
    const auto reader = random() % ended.size();
    if (account.find_rank(reader + 1) == nullptr) continue;
    ended[reader] = std::min<std::uint64_t>(kSteps, ended[reader] + random() % 40);
    (void)account.next(reader + 1, ended[reader], {});
    const auto slowest = *std::ranges::min_element(ended);
    EXPECT_EQ(account.settle(0, {}).from, std::min(slowest, kSteps - 1));
    EXPECT_EQ(account.oldest(), std::min(slowest, kSteps - 1));
    if (ended[reader] == kSteps) account.close_reader(reader + 1, kSteps, false);
  }
}

TEST(Account, StepsThatNobodyNeeds_StayForLateReadersWhileThereIsRoom) {
  Account account(1, "flow", Lasting::kInMemory, 1);
  account.begin_group(1, 0);
  VariableArgs grid;
  grid.name = "grid";
  grid.type = ElementType::kInt32;
  grid.is_constant = true;
  for (std::uint64_t step = 0; step < 10; ++step) {
    auto report = report_of(step);
    if (step == 0) report.variables.push_back({grid, {BoxArgs{}}});
    ASSERT_TRUE(account.take(report).ok());
  }
  EXPECT_EQ(account.settle(35, {}), (Needed{7, {0}}));
  EXPECT_EQ(account.settle(0, {}), (Needed{9, {0}}));
  EXPECT_EQ(account.settle(1000, {}),
            (Needed{9, {0}}));  // what has gone does not come back, nor what is left of step 0
  EXPECT_EQ(account.oldest(), 9u);
}

}  // namespace
}  // namespace streams
