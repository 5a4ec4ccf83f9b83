// SPDX-License-Identifier: BSD-3-Clause
// Native calls that fail though all data are in the file: the number of records, syncs, definitions, fill values. What
// native PnetCDF can do once more is tried again as long as the user wants that; the rest is told, and reported.
#include <services/staging/faulty_disk.hpp>
#include <services/staging/twins_testing.hpp>

#include <cerrno>
#include <fstream>
#include <future>

namespace staging {
namespace {

using testing::attribute;
using testing::dim;
using testing::FaultyDisk;
using testing::Service;
using testing::Twins;
using testing::var;
using Call = FaultyDisk::Call;

constexpr std::int64_t kX = 50'000;
const VariableLayout kBox{0, 8, false, {kX}}, kHistory{1, 8, true, {0, kX}};
constexpr auto kWatchdog = std::chrono::seconds(60);

std::vector<Definition> definitions() {
  return {dim("time", NC_UNLIMITED), dim("x", kX), var("box", NC_DOUBLE, {1}), var("history", NC_DOUBLE, {0, 1})};
}
Definition fill_mode() { return {DefinitionKind::kSetFill, 0, NC_FILL, 0, {}, {}, {}, {}}; }

class FaultTest : public ::testing::Test {
 protected:
  void start(const std::string &durability, std::chrono::milliseconds patience = kWatchdog, bool fails_fast = false) {
    const DrainOptions drain{.patience = patience, .spill = {}, .fails_fast = fails_fast};
    service_.emplace(1, Mode::kCaching, 64 << 20, "inproc", std::chrono::seconds(5), false, drain, durability);
    client_ = service_->client();
    watcher_ = service_->client();
    file_.emplace(*service_, *client_, "fault");
    file_->create();
  }
  void put_all() {
    file_->put(kBox, Piece{0, {0}, {kX}, {}});
    file_->put(kHistory, Piece{1, {0, 0}, {2, kX}, {}});
  }
  int sync() { return *client_->sync(file_->token(), file_->num_records); }
  int close() { return *client_->close(file_->token(), file_->num_records, Closing::kDurable, Order(1)); }
  /// `call` waits until the disk is well again, and is told of nothing.
  template <class Work> void expect_waited_for(const FaultyDisk::Fault &fault, Work call) {
    FaultyDisk disk(file_->path(), fault);
    auto called = std::async(std::launch::async, call);
    await_stuck(*watcher_);
    disk.heal();
    called.get();
    EXPECT_GT(disk.failed(), 0);
    EXPECT_TRUE(watcher_->report(0)->stuck.empty());
  }
  void await_stuck(Client &watcher) {
    const auto deadline = nessie::Deadline::in(kWatchdog);
    while (watcher.report(0)->stuck.empty() && !deadline.passed()) std::this_thread::yield();
    const auto stuck = watcher.report(0)->stuck;
    ASSERT_EQ(stuck.size(), 1u);
    EXPECT_EQ(stuck[0].path, file_->path());
    EXPECT_NE(stuck[0].message.find(std::strerror(expected_errno_)), std::string::npos) << stuck[0].message;
  }
  void expect_whole() {
    file_->close_twin();
    file_->expect_same_files();
    EXPECT_TRUE(watcher_->report(0)->failures.empty());
  }
  /// What the kernel does with pages that it could not write.
  void forget_written(std::int64_t from, std::int64_t size) const {
    std::fstream out(file_->path(), std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(from);
    out << std::string(static_cast<std::size_t>(size), '\0');
  }

  int expected_errno_ = ENOSPC;
  std::optional<Service> service_;
  std::unique_ptr<Client> client_, watcher_;
  std::optional<Twins> file_;
};

constexpr FaultyDisk::Fault kNoRoomForRecords{.error = ENOSPC, .from = 4, .to = 12};
constexpr FaultyDisk::Fault kNoSync{.call = Call::kSync, .error = EIO};

TEST_F(FaultTest, TheNumberOfRecordsIsTriedAgainAtASync) {
  start("");
  file_->enddef(definitions());
  expect_waited_for(kNoRoomForRecords, [&] {
    put_all();
    EXPECT_EQ(sync(), NC_NOERR);
  });
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
}

TEST_F(FaultTest, TheNumberOfRecordsIsTriedAgainAtAClose) {
  start("");
  file_->enddef(definitions());
  expect_waited_for(kNoRoomForRecords, [&] {
    put_all();
    EXPECT_EQ(close(), NC_NOERR);
  });
  expect_whole();
}

TEST_F(FaultTest, TheNumberOfRecordsIsTriedAgainForWhoWantsTheFileWhole) {
  start("");
  file_->enddef(definitions());
  expect_waited_for(kNoRoomForRecords, [&] {
    put_all();
    EXPECT_EQ(*client_->finish_writes(file_->token()), NC_NOERR);
    EXPECT_TRUE(client_->settle({{}, file_->path()}).ok());
  });
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
}

TEST_F(FaultTest, ACallWithoutPatienceIsToldAndTheFileReported) {
  start("", std::chrono::milliseconds(300));
  file_->enddef(definitions());
  const FaultyDisk disk(file_->path(), kNoRoomForRecords);
  put_all();
  EXPECT_EQ(sync(), NC_EWRITE);
  EXPECT_GT(disk.failed(), 1);
  EXPECT_EQ(close(), NC_EWRITE);
  const auto failures = watcher_->report(0)->failures;
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].message.find("No space left"), std::string::npos) << failures[0].message;
  file_->close_twin();
}

TEST_F(FaultTest, WhoWantsToFailFastIsToldAtOnce_AndTheFileBecomesWhole) {
  start("", kWatchdog, true);
  file_->enddef(definitions());
  FaultyDisk disk(file_->path(), kNoRoomForRecords);
  put_all();
  EXPECT_EQ(sync(), NC_EWRITE);
  EXPECT_EQ(close(), NC_EWRITE);
  await_stuck(*watcher_);
  disk.heal();
  EXPECT_TRUE(client_->settle({{}, file_->path()}).ok());
  expect_whole();
}

/// The kernel forgets what it could not write, and only a log has it.
TEST_F(FaultTest, ASyncThatFailsIsToldAndReported) {
  start("");
  file_->enddef(definitions());
  put_all();
  {
    const FaultyDisk disk(file_->path(), kNoSync);
    EXPECT_NE(sync(), NC_NOERR);
    EXPECT_EQ(disk.failed(), 1) << "once more, it may succeed though nothing was written";
  }
  EXPECT_EQ(sync(), NC_NOERR);
  EXPECT_EQ(close(), NC_NOERR);
  const auto failures = watcher_->report(0)->failures;
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].message.find(std::strerror(EIO)), std::string::npos) << failures[0].message;
  file_->close_twin();
}

TEST_F(FaultTest, WhatIsInALogIsPutThereOnceMoreWhenASyncHasFailed) {
  start("logged");
  expected_errno_ = EIO;
  file_->enddef(definitions());
  file_->put(kBox, Piece{0, {0}, {kX / 2}, {}});
  put_all();
  const auto size = static_cast<std::int64_t>(kX * 8 * 3);
  expect_waited_for(kNoSync, [&] {
    auto synced = std::async(std::launch::async, [&] { return sync(); });
    await_stuck(*client_);
    forget_written(0, size);
    EXPECT_EQ(synced.get(), NC_NOERR);
  });
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
}

TEST_F(FaultTest, WhatIsInALogIsPutThereOnceMoreWhenTheSyncOfACloseHasFailed) {
  start("logged");
  expected_errno_ = EIO;
  file_->enddef(definitions());
  put_all();
  expect_waited_for(kNoSync, [&] {
    auto closed = std::async(std::launch::async, [&] { return close(); });
    await_stuck(*client_);
    forget_written(0, kX * 8 * 3);
    EXPECT_EQ(closed.get(), NC_NOERR);
  });
  expect_whole();
}

TEST_F(FaultTest, WhoWantsToFailFastIsToldOfASync_AndWhatIsInALogIsPutThereOnceMoreByTheNext) {
  start("logged", kWatchdog, true);
  file_->enddef(definitions());
  put_all();
  {
    const FaultyDisk disk(file_->path(), kNoSync);
    EXPECT_NE(sync(), NC_NOERR);
  }
  forget_written(0, kX * 8 * 3);
  EXPECT_EQ(sync(), NC_NOERR);
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
}

TEST_F(FaultTest, WhatIsInALogStaysThereWhenPatienceHasEnded) {
  start("logged", std::chrono::milliseconds(300));
  file_->enddef(definitions());
  put_all();
  const FaultyDisk disk(file_->path(), kNoSync);
  (void)close();
  EXPECT_EQ(watcher_->report(0)->failures.size(), 1u);
  service_->stop();
  EXPECT_TRUE(std::filesystem::exists(service_->file("log.0")));
  file_->close_twin();
}

TEST_F(FaultTest, AHeaderIsTriedAgain) {
  for (const int error : {ENOSPC, EIO}) {
    start("");
    expected_errno_ = error;
    expect_waited_for({.error = error, .from = 0, .to = 1}, [&] { file_->enddef(definitions()); });
    put_all();
    EXPECT_EQ(close(), NC_NOERR);
    expect_whole();
  }
}

TEST_F(FaultTest, FillValuesOfANewFileAreTriedAgain) {
  for (const int error : {ENOSPC, EIO}) {
    start("");
    expected_errno_ = error;
    auto with_fill = definitions();
    with_fill.insert(with_fill.begin(), fill_mode());
    expect_waited_for({.error = error, .from = kX}, [&] { file_->enddef(with_fill); });
    file_->put(kHistory, Piece{1, {0, 0}, {2, kX}, {}});
    EXPECT_EQ(close(), NC_NOERR);
    expect_whole();
  }
}

TEST_F(FaultTest, FillValuesOfANewVariableAreTriedAgain) {
  start("logged");
  file_->enddef(definitions());
  file_->put(kBox, Piece{0, {0}, {kX}, {}});
  const std::vector<Definition> more = {fill_mode(), var("new", NC_DOUBLE, {1}), var("records", NC_INT, {0, 1})};
  expect_waited_for({.error = ENOSPC, .from = kX * 8 + 4096}, [&] { file_->enddef(more, false); });
  file_->put(kBox, Piece{0, {10}, {100}, {}});
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
}

TEST_F(FaultTest, AHeaderThatNativePnetcdfCannotWriteOnceMoreIsTold) {
  start("");
  file_->enddef(definitions());
  put_all();
  EXPECT_EQ(sync(), NC_NOERR);
  const FaultyDisk disk(file_->path(), {.error = EIO, .from = 0, .to = 1});
  EndDefArgs args;
  args.file = file_->token(), args.num_records = 2, args.definitions = {attribute("title", "x")};
  EXPECT_EQ(client_->enddef(args, false)->nc_error, NC_EWRITE);
  EXPECT_EQ(disk.failed(), 1);
  file_->close_twin();
}

TEST_F(FaultTest, AnAttributeInDataModeIsTriedAgain) {
  start("logged");
  expected_errno_ = EIO;
  auto with_title = definitions();
  with_title.push_back(attribute("title", "before"));
  file_->enddef(with_title);
  put_all();
  const std::vector<Definition> after = {attribute("title", "behind")};
  expect_waited_for({.error = EIO, .from = 0, .to = 1}, [&] {
    EXPECT_EQ(*client_->amend({file_->token(), after}), NC_NOERR);
  });
  EndDefArgs args;
  args.definitions = after, args.num_records = 2;
  testing::IoThread::get().run([&] { return file_->twin().end_define(args); });
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
}

TEST_F(FaultTest, FillingARecordIsTriedAgain) {
  for (const char *durability : {"", "logged"}) {
    start(durability);
    auto with_fill = definitions();
    with_fill.insert(with_fill.begin(), fill_mode());
    file_->enddef(with_fill);
    put_all();
    expect_waited_for({.error = ENOSPC, .from = kX * 8 * 3}, [&] {
      EXPECT_EQ(*client_->fill_record({file_->token(), 1, 2}), NC_NOERR);
    });
    testing::IoThread::get().run([&] { return file_->twin().fill_record(1, 2); });
    file_->num_records = 3;
    file_->put(kHistory, Piece{1, {2, 7}, {1, 100}, {}});
    EXPECT_EQ(close(), NC_NOERR);
    expect_whole();
  }
}

TEST_F(FaultTest, ARecordIsFilledOnceMoreBehindWhatTheLogHasOfIt) {
  start("logged");
  expected_errno_ = EIO;
  auto with_fill = definitions();
  with_fill.insert(with_fill.begin(), fill_mode());
  file_->enddef(with_fill);
  put_all();
  expect_waited_for(kNoSync, [&] { EXPECT_EQ(*client_->fill_record({file_->token(), 1, 1}), NC_NOERR); });
  testing::IoThread::get().run([&] { return file_->twin().fill_record(1, 1); });
  file_->put(kHistory, Piece{1, {1, 7}, {1, 100}, {}});
  expect_waited_for(kNoSync, [&] { EXPECT_EQ(sync(), NC_NOERR); });
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
}

}  // namespace
}  // namespace staging
