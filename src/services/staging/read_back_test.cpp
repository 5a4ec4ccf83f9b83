// SPDX-License-Identifier: BSD-3-Clause
// What is on the disk is read back, and is not what was written: from a log it is written again, otherwise reported.
#include <services/staging/faulty_disk.hpp>
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::dim;
using testing::FaultyDisk;
using testing::Service;
using testing::Twins;
using testing::var;

constexpr std::int64_t kElements = 200'000;
const VariableLayout kLine{0, 8, false, {kElements}}, kLines{1, 8, true, {0, kElements}};

class ReadBackTest : public ::testing::Test {
 protected:
  void start(const std::string &durability, int servers = 1, Mode mode = Mode::kCaching) {
    DrainOptions drain;
    drain.reads_back = true;
    service_.emplace(servers, mode, 64 << 20, "inproc", std::chrono::seconds(5), false, drain, durability);
    client_ = service_->client();
    file_.emplace(*service_, *client_, "back");
    file_->create();
    file_->enddef({dim("time", NC_UNLIMITED), dim("x", kElements), var("box", NC_DOUBLE, {1}),
                   var("history", NC_DOUBLE, {0, 1})});
  }
  void put(const VariableLayout &layout, Piece piece) { file_->put(layout, std::move(piece)); }
  void put_box(std::int64_t begin, std::int64_t count, std::int64_t stride = 1) {
    Piece piece{0, {begin}, {count}, {}};
    if (stride > 1) piece.stride = {stride};
    put(kLine, piece);
  }
  int sync() { return *client_->sync(file_->token(), file_->num_records); }
  int close() {
    return *client_->close(file_->token(), file_->num_records, Closing::kDurable, Order(client_->servers()));
  }
  void expect_whole() {
    file_->close_twin();
    file_->expect_same_files();
    expect_nothing_reported();
  }
  void expect_nothing_reported() {
    for (int s = 0; s < client_->servers(); ++s) EXPECT_TRUE(client_->report(s)->failures.empty());
  }
  static FaultyDisk::Fault turning(std::int64_t element, int times = 1) {
    const auto at = kHeader + element * 8;
    return {.times = times, .from = at, .to = at + 1, .turns_a_bit = true};
  }

  static constexpr std::int64_t kHeader = 512;  // PnetCDF's alignment
  std::optional<Service> service_;
  std::unique_ptr<Client> client_;
  std::optional<Twins> file_;
};

TEST_F(ReadBackTest, WhatDiffersAndIsInMemoryOnlyIsReportedByASync) {
  start("");
  const FaultyDisk disk(file_->path(), turning(3));
  put_box(0, kElements);
  EXPECT_EQ(sync(), NC_EREAD);
  EXPECT_EQ(disk.failed(), 1);
  EXPECT_EQ(close(), NC_NOERR);
  const auto failures = client_->report(0)->failures;
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].message.find("not on the disk as it was written"), std::string::npos) << failures[0].message;
  EXPECT_EQ(failures[0].missing, std::vector<std::string>{"box[0:8191]"});
  EXPECT_LT(failures[0].bytes_in_file, failures[0].bytes_acknowledged);
  file_->close_twin();
}

TEST_F(ReadBackTest, WhatDiffersAndIsInMemoryOnlyIsReportedByAClose) {
  start("");
  const FaultyDisk disk(file_->path(), turning(kElements - 1));
  put_box(0, kElements);
  EXPECT_EQ(close(), NC_EREAD);
  EXPECT_EQ(client_->report(0)->failures.size(), 1u);
  file_->close_twin();
}

TEST_F(ReadBackTest, WhatDiffersAndIsWrittenOverIsNoLoss) {
  start("");
  const FaultyDisk disk(file_->path(), turning(3));
  put_box(0, kElements);
  EXPECT_TRUE(client_->settle({{}, file_->path()}).ok());
  put_box(0, kElements);
  EXPECT_EQ(sync(), NC_NOERR);
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_EQ(disk.failed(), 1);
  expect_whole();
}

TEST_F(ReadBackTest, WhatDiffersBesideWhatIsWrittenOverIsReported) {
  start("");
  const FaultyDisk disk(file_->path(), turning(3));
  put_box(0, kElements);
  EXPECT_TRUE(client_->settle({{}, file_->path()}).ok());
  put_box(10, 100);
  EXPECT_EQ(sync(), NC_EREAD);
  const auto failures = client_->report(0)->failures;
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].missing, (std::vector<std::string>{"box[0:9]", "box[110:8191]"}));
  EXPECT_EQ(close(), NC_NOERR);
  file_->close_twin();
}

TEST_F(ReadBackTest, WhatIsInALogIsWrittenAgain) {
  for (const bool syncs : {true, false}) {
    start("logged");
    const FaultyDisk disk(file_->path(), turning(70'000));
    put_box(0, kElements);
    put_box(100, 5'000, 3);
    put(kLines, Piece{1, {0, 0}, {2, kElements}, {}});
    if (syncs) { EXPECT_EQ(sync(), NC_NOERR); }
    put_box(200, 50);
    EXPECT_EQ(close(), NC_NOERR);
    EXPECT_EQ(disk.failed(), 1);
    expect_whole();
  }
}

TEST_F(ReadBackTest, WhatAnotherServerHasIsWrittenAgain) {
  start("replicated", 2);
  const FaultyDisk disk(file_->path(), turning(70'000));
  put_box(0, kElements);
  EXPECT_EQ(close(), NC_NOERR);
  EXPECT_EQ(disk.failed(), 1);
  expect_whole();
}

TEST_F(ReadBackTest, WhatNeverComesOutRightStaysInTheLogAndIsReported) {
  start("logged");
  const FaultyDisk disk(file_->path(), turning(70'000, 1000));
  put_box(0, kElements);
  (void)close();
  EXPECT_GT(disk.failed(), 1);
  EXPECT_EQ(client_->report(0)->failures.size(), 1u);
  service_->stop();
  EXPECT_TRUE(std::filesystem::exists(service_->file("log.0")));
  file_->close_twin();
}

TEST_F(ReadBackTest, WhatAnotherHandleWritesOverItIsNoDifference) {
  constexpr FileToken kOther = 9;
  start("");
  put_box(0, kElements);
  const OpenArgs as{kOther, file_->path(), NC_WRITE, {}, {}, 1, Durability::kInherited};
  ASSERT_EQ(client_->open(as, testing::program_file(file_->path()).get())->nc_error, NC_NOERR);
  Order order(1);
  std::vector<double> data(1000, 7.0);
  const Item item{&kLine, Piece{0, {500}, {1000}, {}}, std::as_writable_bytes(std::span(data))};
  ASSERT_EQ(*client_->write(kOther, 0, order, {&item, 1}), NC_NOERR);
  order.know(order.end_call());
  EXPECT_EQ(*client_->close(kOther, 0, Closing::kDurable, order), NC_NOERR);
  EXPECT_EQ(sync(), NC_NOERR);
  EXPECT_EQ(close(), NC_NOERR);
  expect_nothing_reported();
  file_->close_twin();
}

TEST_F(ReadBackTest, NothingIsReportedOfOrdinaryRuns) {
  for (const auto &[durability, servers, mode] : {std::tuple{"", 1, Mode::kCaching},
                                                  {"", 3, Mode::kCaching},
                                                  {"", 1, Mode::kDirect},
                                                  {"logged", 2, Mode::kCaching}}) {
    start(durability, servers, mode);
    for (std::int64_t i = 0; i < 5; ++i) {
      put_box(i * 1000, 100'000 - i * 5000);
      put_box(i, 3000, 7);
      for (std::int64_t at = 0; at < 500; at += 50) put_box(at * (i + 1), 9);
      put(kLines, Piece{1, {i, 0}, {1, kElements}, {}});
      put(kLines, Piece{1, {0, 500 * i}, {i + 1, 1000}, {}});
      put(kLines, Piece{1, {0, i}, {i + 1, 2000}, {1, 9}});
      if (i % 2 == 1) { EXPECT_EQ(sync(), NC_NOERR); }
      if (i == 3) file_->enddef({dim("y", 7), var("more", NC_INT, {2})}, false);
      if (i == 4) { EXPECT_TRUE(client_->settle({{}, file_->path()}).ok()); }
    }
    EXPECT_EQ(close(), NC_NOERR);
    expect_whole();
  }
}

}  // namespace
}  // namespace staging
