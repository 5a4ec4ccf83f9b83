// SPDX-License-Identifier: BSD-3-Clause
// The shared space, over one server and over several.
#include <services/streams/testing.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <future>

namespace streams {
namespace {

using namespace testing;
using api::Box;
using api::Type;
using nessie::Code;

constexpr std::int64_t kSide = 48;

class SharedSpace : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  explicit SharedSpace(std::uint32_t servers = GetParam()) : servers_(servers) {}
  Servers servers_;

  api::Space open() {
    auto space = api::Space::open(servers_.at(), soon());
    EXPECT_TRUE(space.ok()) << space.error().message;
    return *std::move(space);
  }
  static nessie::Status put(api::Space &space, const std::string &name, std::uint64_t version, const Box &box,
                            Deadline deadline = soon()) {
    const auto values = values_of(version, box);
    return space.put(name, version, Type::kDouble, box, values.data(), deadline);
  }
  static nessie::Result<std::vector<double>> get(api::Space &space, const std::string &name, std::uint64_t version,
                                                 const Box &box, Deadline deadline = soon()) {
    std::vector<double> values(values_of(0, box).size());
    auto got = space.get(name, version, Type::kDouble, box, values.data(), values.size() * sizeof(double), deadline);
    if (!got.ok()) return got.error();
    return values;
  }
  /// Of `count` parts of the square, in rows.
  static Box part_of(std::int64_t i, std::int64_t count) { return {{kSide / count * i, 0}, {kSide / count, kSide}}; }
};

TEST_P(SharedSpace, ManyWritersCoverABox_ReadersWhoWaitedBeforeGetAnyBoxOfIt) {
  const std::vector<Box> wanted = {{{0, 0}, {kSide, kSide}}, {{5, 7}, {11, 13}}, {{47, 0}, {1, kSide}}};
  for (std::uint64_t version = 0; version < 3; ++version) {
    std::vector<std::future<void>> readers;
    for (const auto &box : wanted)
      readers.push_back(std::async(std::launch::async, [this, version, box] {
        auto space = open();
        const auto got = get(space, "edge/T", version, box);
        ASSERT_TRUE(got.ok()) << got.error().message;
        EXPECT_EQ(*got, values_of(version, box));
      }));
    std::vector<std::future<void>> writers;
    for (std::int64_t i = 0; i < 8; ++i)
      writers.push_back(std::async(std::launch::async, [this, version, i] {
        auto space = open();
        ASSERT_TRUE(put(space, "edge/T", version, part_of(i, 8)).ok());
      }));
    for (auto &each : writers) each.get();
    for (auto &each : readers) each.get();
  }
}

TEST_P(SharedSpace, WhatCannotBe_IsToldWhereverItWasPut) {
  auto a = open(), b = open();
  for (std::int64_t i = 0; i < 4; ++i) ASSERT_TRUE(put(i % 2 == 0 ? a : b, "x", 1, part_of(i, 8)).ok());
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(put(b, "x", 1, part_of(i, 8)).code(), Code::kExists);
  EXPECT_EQ(put(a, "x", 1, {{0}, {4}}).code(), Code::kInvalidArgument);
  const std::vector<float> floats(4);
  EXPECT_EQ(a.put("x", 2, Type::kFloat, {{0, 0}, {2, 2}}, floats.data(), soon()).code(), Code::kInvalidArgument);
  const auto half = get(a, "x", 1, part_of(0, 1), Deadline::in(seconds(1)));
  EXPECT_EQ(half.code(), Code::kTimedOut);
  EXPECT_NE(half.error().message.find(std::to_string(kSide * kSide / 2)), std::string::npos);
  EXPECT_EQ(get(a, "x", 1, part_of(0, 2)).value(), values_of(1, part_of(0, 2)));  // what was refused changed nothing
}

TEST_P(SharedSpace, OldVersionsGo_AlsoUnderWhoWaitsForThem) {
  auto space = open();
  ASSERT_EQ(space.newest("x", soon()).code(), Code::kNotFound);
  ASSERT_TRUE(put(space, "x", 1, part_of(0, 8)).ok());
  auto waits = std::async(std::launch::async, [this] {
    auto other = open();
    return get(other, "x", 1, part_of(0, 1)).code();
  });
  for (std::uint64_t version = 2; version <= 6; ++version)
    for (std::int64_t i = 0; i < 8; ++i) ASSERT_TRUE(put(space, "x", version, part_of(i, 8)).ok());
  EXPECT_EQ(waits.get(), Code::kNotFound);
  EXPECT_EQ(space.newest("x", soon()).value(), 6u);
  EXPECT_EQ(get(space, "x", 2, part_of(0, 8)).code(), Code::kNotFound);
  EXPECT_EQ(put(space, "x", 2, part_of(0, 8)).code(), Code::kNotFound);
  for (std::uint64_t version = 3; version <= 6; ++version)
    EXPECT_EQ(get(space, "x", version, part_of(0, 1)).value(), values_of(version, part_of(0, 1)));
}

TEST_P(SharedSpace, WhatIsPutIsAnotherArrayThanIsWaitedFor_WhoWaitsHearsSo) {
  auto space = open();
  auto waits = std::async(std::launch::async, [this] {
    auto other = open();
    return get(other, "x", 1, part_of(0, 1)).code();
  });
  EXPECT_EQ(get(space, "x", 1, part_of(0, 1), Deadline::in(milliseconds(100))).code(), Code::kTimedOut);
  ASSERT_TRUE(put(space, "x", 1, {{0}, {4}}).ok());
  EXPECT_EQ(waits.get(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Of, SharedSpace, ::testing::Values(1u, 2u, 4u));

std::string name_at(std::uint32_t home) {
  for (int i = 0;; ++i)
    if (home_of("x" + std::to_string(i), 2) == home) return "x" + std::to_string(i);
}

/// The parameter: where account is kept of the name.
class SpaceOfTwo : public SharedSpace {
 protected:
  SpaceOfTwo() : SharedSpace(2) {}
  const std::string name_ = name_at(GetParam());
};

TEST_P(SpaceOfTwo, AServerIsLost_WhatItHadIsToldAtOnceAndCanBePutAgain) {
  auto space = open();
  for (std::int64_t i = 0; i < 8; ++i) ASSERT_TRUE(put(space, name_, 1, part_of(i, 8)).ok());
  EXPECT_EQ(get(space, name_, 1, part_of(0, 1)).value(), values_of(1, part_of(0, 1)));
  servers_.restart(1);
  EXPECT_EQ(get(space, name_, 1, part_of(0, 1)).code(), Code::kPeerLost);
  int lost = 0;
  for (std::int64_t i = 0; GetParam() == 0 && i < 8; ++i) {
    const auto got = get(space, name_, 1, part_of(i, 8));
    EXPECT_EQ(got.code(), got.ok() ? Code::kOk : Code::kPeerLost);
    lost += got.ok() ? 0 : 1;
  }
  EXPECT_EQ(lost, GetParam() == 0 ? 4 : 0);  // every second one
  for (std::int64_t i = 0; i < 8; ++i) {
    const auto again = put(space, name_, 1, part_of(i, 8));
    EXPECT_TRUE(again.ok() || again.code() == Code::kExists) << again.error().message;
  }
  EXPECT_EQ(get(space, name_, 1, part_of(0, 1)).value(), values_of(1, part_of(0, 1)));
}

INSTANTIATE_TEST_SUITE_P(AccountAt, SpaceOfTwo, ::testing::Values(0u, 1u));

TEST(SpaceMemory, EachServerTakesItsShare) {
  Servers servers(4);
  auto space = *api::Space::open(servers.at(), soon());
  const std::vector<double> values(100 << 10);
  for (std::int64_t i = 0; i < 8; ++i)
    ASSERT_TRUE(space.put("x", 1, Type::kDouble, {{i * (100 << 10)}, {100 << 10}}, values.data(), soon()).ok());
  for (std::uint32_t server = 0; server < 4; ++server)
    EXPECT_EQ(servers.figure(server, "space_bytes"), 2.0 * (100 << 10) * sizeof(double));
}

TEST(SpaceMemory, WhatDoesNotFit_GoesToTheLogAndIsGotFromThere) {
  std::string folder = "/tmp/nessie-space-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ServerOptions options;
  options.memory_bytes = 4 << 20;
  options.log_path = folder + "/log";
  {
    Servers servers(1, options);
    auto space = *api::Space::open(servers.at(), soon());
    const std::int64_t elements = 128 << 10;  // 1 MiB
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::vector<double> values(static_cast<std::size_t>(elements), static_cast<double>(i));
      const auto put = space.put("x", 1, Type::kDouble, {{i * elements}, {elements}}, values.data(), soon());
      ASSERT_TRUE(put.ok()) << put.error().message;
    }
    std::vector<double> values(static_cast<std::size_t>(16 * elements));
    ASSERT_TRUE(
        space.get("x", 1, Type::kDouble, {{0}, {16 * elements}}, values.data(), values.size() * 8, soon()).ok());
    for (std::size_t i = 0; i < values.size(); i += 1000)
      ASSERT_EQ(values[i], static_cast<double>(i / static_cast<std::size_t>(elements)));
  }
  std::filesystem::remove_all(folder);
}

TEST(SpaceMemory, WithoutALog_IsBusyAtTheDeadlineAndSaysWhy) {
  ServerOptions options;
  options.memory_bytes = 1 << 20;
  Servers servers(1, options);
  auto space = *api::Space::open(servers.at(), soon());
  const std::vector<double> values(100 << 10);
  ASSERT_TRUE(space.put("x", 1, Type::kDouble, {{0}, {100 << 10}}, values.data(), soon()).ok());
  const auto busy =
      space.put("x", 1, Type::kDouble, {{100 << 10}, {100 << 10}}, values.data(), Deadline::in(seconds(1)));
  EXPECT_EQ(busy.code(), Code::kBusy);
  EXPECT_NE(busy.error().message.find("streams.memory"), std::string::npos);
}

}  // namespace
}  // namespace streams
