// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/drainer.hpp>

#include <gtest/gtest.h>

#include <malloc.h>

#include <array>

namespace staging {
namespace {

/// A file with a page of each variable, and an I/O thread that never comes to drain them.
class DrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    nssi::RuntimeOptions options;
    options.endpoint.transports = {"inproc"};
    auto runtime = nssi::Runtime::open(options);
    ASSERT_TRUE(runtime.ok()) << runtime.error().message;
    runtime_ = std::move(*runtime);
    drainer_ = std::make_unique<Drainer>(*runtime_, io_, budget_, 64 << 20, statistics_);
    file_ = std::make_shared<OpenFile>(*runtime_, 1, "out.nc", nssi::PeerId{}, nullptr);
    Variable variable;
    variable.element_bytes = 4;
    variable.shape = {256};
    file_->set_variables(drainer_->cache(), std::vector<Variable>(kVariables, variable));
    const std::array<std::byte, 4> value{};
    for (auto &each : file_->variables()) drainer_->put(*each.cached, {0, {0}, {1}, {}}, value.data());
  }

  static constexpr std::size_t kVariables = 1000;
  nessie::Budget budget_;
  Worker io_;
  ReportResult statistics_;
  std::unique_ptr<nssi::Runtime> runtime_;
  std::unique_ptr<Drainer> drainer_;
  std::shared_ptr<OpenFile> file_;
};

TEST_F(DrainerTest, AFileThatIsHastenedAgainAndAgainCostsNothingMore) {
  drainer_->hasten(*file_);
  const auto before = ::mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) drainer_->hasten(*file_);
  EXPECT_LT(::mallinfo2().uordblks, before + (1 << 20));
}

TEST_F(DrainerTest, AHastenedFileIsUrgent) {
  drainer_->hasten(*file_);
  std::size_t pages = 0;
  auto &cache = drainer_->cache();
  for (; auto *page = cache.next(PageState::kUrgent); ++pages) cache.give_back(cache.take(*page));
  EXPECT_GT(pages, kVariables / 3);  // the others are on their way
  EXPECT_FALSE(cache.next(PageState::kPartial));
}

}  // namespace
}  // namespace staging
