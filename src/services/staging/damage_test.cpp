// SPDX-License-Identifier: BSD-3-Clause
// A bit of what a server has in memory turns around before it is written.
#include <services/staging/testing.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace staging {

namespace {

constexpr FileToken kFile = 5;
constexpr std::int64_t kElements = 300'000;

class DamageTest : public ::testing::Test {
 protected:
  void start(int servers, const std::string &durability, Mode mode = Mode::kCaching, const DrainOptions &drain = {}) {
    service_.emplace(servers, mode, 64 << 20, "inproc", std::chrono::seconds(2), false, drain, durability);
    client_ = service_->client();
    order_ = Order(servers);
    path_ = service_->file("out.nc");
    testing::create_file(*client_, kFile, path_, {testing::dim("x", kElements), testing::var("v", NC_DOUBLE, {0})});
    values_.assign(kElements, 0);
  }
  void put(std::int64_t begin, std::int64_t count, double first, std::int64_t stride = 1) {
    std::vector<double> data(static_cast<std::size_t>(count));
    std::iota(data.begin(), data.end(), first);
    for (std::int64_t i = 0; i < count; ++i)
      values_[static_cast<std::size_t>(begin + i * stride)] = data[static_cast<std::size_t>(i)];
    Piece piece{0, {begin}, {count}, {}};
    if (stride > 1) piece.stride = {stride};
    const Item item{&layout_, piece, std::as_writable_bytes(std::span(data))};
    ASSERT_EQ(*client_->write(kFile, 0, order_, {&item, 1}), NC_NOERR);
    order_.know(order_.end_call());
    ASSERT_EQ(*client_->finish_writes(kFile), NC_NOERR);
  }
  void damage(std::int64_t element) {
    int damaged = 0;
    for (int s = 0; s < client_->servers(); ++s)
      damaged += ServerInside::turn_a_bit(service_->server(s), kFile, 0, element) ? 1 : 0;
    ASSERT_EQ(damaged, 1);
  }
  int close() { return *client_->close(kFile, 0, Closing::kDurable, order_); }
  std::vector<double> in_file() const {
    const auto bytes = testing::contents(path_);
    std::vector<double> found(kElements);
    const auto size = found.size() * sizeof(double);
    if (bytes.size() < size) return {};
    const char *from = bytes.data() + bytes.size() - size;
    for (auto &value : found) {
      std::uint64_t word = 0;
      std::memcpy(&word, from, sizeof(word));
      word = __builtin_bswap64(word);
      std::memcpy(&value, &word, sizeof(word));
      from += sizeof(word);
    }
    return found;
  }
  ReportResult reports() {
    ReportResult all;
    for (int s = 0; s < client_->servers(); ++s) {
      auto one = *client_->report(s);
      all.damaged_pages += one.damaged_pages;
      std::ranges::move(one.failures, std::back_inserter(all.failures));
    }
    return all;
  }

  std::string path_;
  VariableLayout layout_{0, 8, false, {kElements}};
  std::vector<double> values_;
  Order order_{1};
  std::optional<testing::Service> service_;
  std::unique_ptr<Client> client_;
};

TEST_F(DamageTest, WhatIsInMemoryOnlyIsNotWrittenAndNamed) {
  start(1, "");
  put(0, kElements, 1);
  damage(200'000);
  EXPECT_EQ(close(), NC_EREAD);
  const auto report = reports();
  EXPECT_EQ(report.damaged_pages, 1u);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_NE(report.failures[0].message.find("damaged in the memory"), std::string::npos) << report.failures[0].message;
  ASSERT_EQ(report.failures[0].missing.size(), 1u);
  EXPECT_EQ(report.failures[0].missing[0], "v[131072:262143]");
  const auto found = in_file();
  EXPECT_TRUE(std::equal(found.begin(), found.begin() + 131'072, values_.begin())) << "the others are there";
  EXPECT_EQ(found[200'000], 0.0);
  EXPECT_EQ(found[299'999], values_[299'999]);
}

TEST_F(DamageTest, WithoutDamageScatteredPutsAndPutsOverThemAreWritten) {
  start(1, "");
  put(0, kElements / 3, 1, 3);
  put(1, kElements / 3, 100, 3);
  put(10'000, 150'000, 5);
  put(2, kElements / 3, 1000, 3);
  for (std::int64_t at = 0; at < 2'000; at += 7) put(at, 9, static_cast<double>(at));
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_EQ(in_file(), values_);
  EXPECT_EQ(reports().damaged_pages, 0u);
}

TEST_F(DamageTest, InDirectModeTheWriteIsNotHeldUp) {
  start(1, "", Mode::kDirect);
  put(0, kElements, 1);
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_EQ(in_file(), values_);
}

TEST_F(DamageTest, WithoutChecksumsNobodySees) {
  DrainOptions drain;
  drain.checks = false;
  start(1, "", Mode::kCaching, drain);
  put(0, kElements, 1);
  damage(200'000);
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_NE(in_file()[200'000], values_[200'000]);
}

TEST_F(DamageTest, WhatIsInALogIsMadeAgain) {
  start(1, "logged");
  put(0, kElements, 1);
  put(100, 50'000, 7, 3);
  put(120'000, 30'000, 9);
  damage(3);
  damage(140'000);
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_EQ(in_file(), values_);
  const auto report = reports();
  EXPECT_EQ(report.damaged_pages, 2u);
  EXPECT_TRUE(report.failures.empty());
}

TEST_F(DamageTest, WhatAnotherServerHasIsMadeAgain) {
  start(2, "replicated");
  put(0, kElements, 1);
  damage(3);
  damage(200'000);
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_EQ(in_file(), values_);
  const auto report = reports();
  EXPECT_EQ(report.damaged_pages, 2u);
  EXPECT_TRUE(report.failures.empty());
}

}  // namespace
}  // namespace staging
