// SPDX-License-Identifier: BSD-3-Clause
// A file system that has no room for a while: what is on its way to it is tried again, as long as the user wants that.
#include <services/staging/process_testing.hpp>

#include <gtest/gtest.h>

namespace staging {
namespace {

using testing::kVariableBytes;
using testing::kWatchdog;
using testing::kX;
using testing::kY;
using testing::kZ;

class FullDisk : public testing::StagingProcess {
 protected:
  void SetUp() override {
    testing::StagingProcess::SetUp();
    disk_ = folder_ + "/disk";
    std::filesystem::create_directory(disk_);
    if (::mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=2m") != 0)
      GTEST_SKIP() << "needs the right to mount a small file system";
    mounted_ = disk_;
  }
  void start_with(const char *patience, const char *fails_fast = "off", std::vector<std::string> flags = {}) {
    start(std::move(flags), 0, 1, [=] {
      ::setenv("NESSIE_STAGING_PATIENCE", patience, 1);
      ::setenv("NESSIE_STAGING_FAIL_FAST", fails_fast, 1);
    });
    client_ = connect();
  }
  void make_room() const { ASSERT_EQ(::mount("tmpfs", disk_.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0); }
  void await_stuck(std::size_t files) {
    const auto deadline = nessie::Deadline::in(kWatchdog);
    while (client_->report(0)->stuck.size() != files && !deadline.passed()) ::usleep(1000);
    ASSERT_EQ(client_->report(0)->stuck.size(), files);
  }
  /// A file on the full disk, of which something is being tried to be written.
  void write_without_room() {
    create(*client_, disk_ + "/full.nc", 1);
    ASSERT_EQ(*put(*client_, 0), NC_NOERR);
    ASSERT_EQ(*client_->finish_writes(kToken), NC_NOERR);
    waiter_ = std::thread([this, client = std::shared_ptr(connect())] { (void)client->settle({{}, path_}); });
    await_stuck(1);
  }
  int close(FileToken token = kToken) { return *client_->close(token, 0, Closing::kDurable, *order_); }
  void TearDown() override {
    if (waiter_.joinable()) waiter_.join();
    client_.reset();
    testing::StagingProcess::TearDown();
  }

  std::string disk_;
  std::unique_ptr<Client> client_;
  std::thread waiter_;
};

TEST_F(FullDisk, ThatHasRoomAgainGetsAllOfTheFile) {
  start_with("60s");
  write_without_room();
  const auto stuck = client_->report(0)->stuck.front();
  EXPECT_EQ(stuck.path, path_);
  EXPECT_NE(stuck.message.find("No space left on device"), std::string::npos) << stuck.message;
  EXPECT_GT(stuck.left_s, 0);
  make_room();
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_TRUE(in_file(0, 0));
  const auto report = *client_->report(0);
  EXPECT_TRUE(report.failures.empty());
  EXPECT_TRUE(report.stuck.empty());
  EXPECT_EQ(report.bytes_pending, 0u);
}

TEST_F(FullDisk, HoldsUpNoFileThatIsElsewhere) {
  start_with("60s");
  write_without_room();
  create(*client_, folder_ + "/healthy.nc", 1, kZ, kToken + 1);
  const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
  const Item item{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(data_))};
  ASSERT_EQ(*client_->write(kToken + 1, 0, *order_, {&item, 1}), NC_NOERR);
  order_->know(order_->end_call());
  EXPECT_EQ(close(kToken + 1), NC_NOERR);
  EXPECT_TRUE(in_file(0, 0));
  EXPECT_EQ(client_->report(0)->stuck.size(), 1u);
  make_room();
}

TEST_F(FullDisk, WhatIsPutMeanwhileIsReadAndStays) {
  start_with("60s");
  write_without_room();
  const VariableLayout layout{0, 8, false, {kZ, kY, kX}};
  std::vector<double> read(data_.size());
  const Item item{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(read))};
  EXPECT_EQ(*client_->read(kToken, 0, *order_, {&item, 1}), NC_NOERR);
  EXPECT_EQ(read, data_);
  std::vector<double> newer(data_.size(), 7.0);
  const Item put_again{&layout, Piece{0, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(newer))};
  ASSERT_EQ(*client_->write(kToken, 0, *order_, {&put_again, 1}), NC_NOERR);
  order_->know(order_->end_call());
  EXPECT_EQ(*client_->read(kToken, 0, *order_, {&item, 1}), NC_NOERR);
  EXPECT_EQ(read, newer);
  EXPECT_EQ(client_->report(0)->stuck.size(), 1u);
  ASSERT_EQ(*put(*client_, 0), NC_NOERR);
  make_room();
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_TRUE(in_file(0, 0));
}

TEST_F(FullDisk, WithASpillWritersGoOn) {
  start_with("60s", "off", {"--memory", "1M", "--spill", folder_ + "/spill"});
  write_without_room();
  EXPECT_GT(client_->report(0)->bytes_spilled, 0u);
  EXPECT_LE(client_->report(0)->memory_high_bytes, 1u << 20);
  make_room();
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_TRUE(in_file(0, 0));
  EXPECT_TRUE(client_->report(0)->failures.empty());
}

TEST_F(FullDisk, IsToldWhenPatienceHasEnded) {
  start_with("300ms");
  write_without_room();
  EXPECT_NE(close(), NC_NOERR);
  const auto report = *client_->report(0);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_FALSE(report.failures.front().missing.empty());
  EXPECT_TRUE(report.stuck.empty());
}

TEST_F(FullDisk, MayHaveRoomAgainAfterPatienceHasEnded) {
  start_with("300ms");
  write_without_room();
  EXPECT_NE(*client_->sync(kToken, 0), NC_NOERR);
  make_room();
  ASSERT_EQ(*put(*client_, 0), NC_NOERR);
  EXPECT_EQ(*client_->sync(kToken, 0), NC_NOERR);
  EXPECT_TRUE(in_file(0, 0));
  EXPECT_EQ(close(), NC_NOERR);
}

TEST_F(FullDisk, IsToldAtOnceIfTheUserWantsThat_AndTheFileBecomesWhole) {
  start_with("60s", "on");
  write_without_room();
  EXPECT_NE(*client_->sync(kToken, 0), NC_NOERR);
  EXPECT_NE(close(), NC_NOERR);
  EXPECT_EQ(client_->report(0)->stuck.size(), 1u);
  make_room();
  wait_until_drained(*client_, 1);
  EXPECT_TRUE(in_file(0, 0));
}

TEST_F(FullDisk, IsWaitedForByWhoeverWritesThrough) {
  start_with("60s", "off", {"--mode", "direct"});
  create(*client_, disk_ + "/full.nc", 1);
  waiter_ = std::thread([this, watcher = std::shared_ptr(connect())] {
    while (watcher->report(0)->stuck.empty()) ::usleep(1000);
    make_room();
  });
  EXPECT_EQ(*put(*client_, 0), NC_NOERR);
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_TRUE(in_file(0, 0));
}

}  // namespace
}  // namespace staging
