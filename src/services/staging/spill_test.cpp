// SPDX-License-Identifier: BSD-3-Clause
// Output of many times the memory, while the file system stands still, or does not.
#include <services/staging/testing.hpp>

#include <sys/mount.h>

#include <cstring>
#include <fstream>

namespace staging {
namespace {

using testing::IoThread;

constexpr std::uint64_t kMemory = 1 << 20;
constexpr std::int64_t kElements = 100 * kMemory / 8, kSlice = 32 << 10;
constexpr FileToken kFile = 5;

/// The I/O thread stands still, as with a file system that hangs, until this goes on, or goes.
class Standstill {
 public:
  Standstill() {
    IoThread::get().queue().submit(Worker::Lane::kRequest, [until = over_.get_future().share()] { until.wait(); });
  }
  ~Standstill() { go_on(); }
  void go_on() {
    if (!std::exchange(is_over_, true)) over_.set_value();
  }

 private:
  std::promise<void> over_;
  bool is_over_ = false;
};

class SpillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "spill-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  void TearDown() override {
    client_.reset();
    service_.reset();
    std::filesystem::remove_all(folder_);
  }
  void start(std::int64_t elements) {
    layout_.shape = {elements};
    values_.assign(static_cast<std::size_t>(elements), 0);
    DrainOptions drain;
    drain.spill = folder_;
    service_.emplace(1, Mode::kCaching, kMemory, "inproc", std::chrono::seconds(30), false, drain);
    client_ = service_->client();
    path_ = service_->file("out.nc");
    testing::create_file(*client_, kFile, path_, {testing::dim("x", elements), testing::var("v", NC_DOUBLE, {0})});
  }
  /// Every `step`th element from `begin` on becomes its own number times `factor`, and must be so in the file.
  void put(Interval elements, double factor, std::int64_t step = 1) {
    std::vector<double> data;
    for (auto i = elements.begin; i < elements.end; i += step) {
      data.push_back(factor * static_cast<double>(i));
      values_[static_cast<std::size_t>(i)] = data.back();
    }
    Piece piece{0, {elements.begin}, {static_cast<std::int64_t>(data.size())}, {}};
    if (step > 1) piece.stride = {step};
    const Item item{&layout_, piece, std::as_writable_bytes(std::span(data))};
    ASSERT_EQ(*client_->write(kFile, 0, order_, {&item, 1}), NC_NOERR);
    order_.know(order_.end_call());
  }
  void put_all(double factor, std::int64_t step = 1) {
    const auto elements = layout_.shape[0];
    for (std::int64_t at = 0; at < elements; at += kSlice) put({at, std::min(elements, at + kSlice)}, factor, step);
    ASSERT_EQ(*client_->finish_writes(kFile), NC_NOERR);
  }
  void expect_read(Interval elements) {
    std::vector<double> data(static_cast<std::size_t>(elements.size()));
    const Item item{&layout_, Piece{0, {elements.begin}, {elements.size()}, {}},
                    std::as_writable_bytes(std::span(data))};
    ASSERT_EQ(*client_->read(kFile, 0, order_, {&item, 1}), NC_NOERR);
    for (std::size_t i = 0; i < data.size(); ++i)
      ASSERT_EQ(data[i], values_[static_cast<std::size_t>(elements.begin) + i]) << i;
  }
  int close() { return *client_->close(kFile, 0, Closing::kDurable, order_); }
  void expect_whole() {
    const auto bytes = testing::contents(path_);
    const auto size = values_.size() * 8;
    ASSERT_GE(bytes.size(), size);
    const char *from = bytes.data() + bytes.size() - size;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::uint64_t word = 0;
      double value = 0;
      std::memcpy(&word, from + i * 8, 8);
      word = __builtin_bswap64(word);
      std::memcpy(&value, &word, 8);
      ASSERT_EQ(value, values_[i]) << i;
    }
  }
  ReportResult report() { return *client_->report(0); }

  std::string folder_, path_;
  VariableLayout layout_{0, 8, false, {}};
  std::vector<double> values_;
  Order order_{1};
  std::optional<testing::Service> service_;
  std::unique_ptr<Client> client_;
};

TEST_F(SpillTest, WhileTheFileSystemStandsStillWritersGoOn) {
  start(kElements);
  {
    Standstill standstill;
    put_all(1);
    EXPECT_GT(report().spill_bytes, 0u);
  }
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
  EXPECT_LE(report().memory_high_bytes, kMemory);
  EXPECT_TRUE(report().failures.empty());
  EXPECT_LE(report().spill_bytes, std::uint64_t{48} << 20) << "what nobody needs is given back";
  client_.reset();
  service_->stop();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(SpillTest, WithAFileSystemThatWorksTheFileIsTheSame) {
  start(kElements);
  put_all(1);
  put_all(2, 3);
  expect_read({kElements / 2, kElements / 2 + kSlice});
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
  EXPECT_LE(report().memory_high_bytes, kMemory);
}

TEST_F(SpillTest, WhatIsPutOverWhatWasSpilledStays) {
  start(kElements / 20);
  Standstill standstill;
  for (const double factor : {1, 2, 3}) put_all(factor);
  put_all(4, 7);
  standstill.go_on();
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
}

TEST_F(SpillTest, WhatWasSpilledIsRead) {
  start(kElements / 10);
  Standstill standstill;
  put_all(1);
  put_all(5, 2);
  standstill.go_on();
  for (const std::int64_t part : {7, 2, 5, 0}) {
    const auto begin = part * layout_.shape[0] / 8;
    expect_read({begin, begin + kSlice});
  }
  put({0, kSlice}, 9);
  expect_read({0, kSlice});
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
}

TEST_F(SpillTest, WithoutRoomThereWritersWaitForTheFile) {
  if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "needs the right to mount a small file system";
  start(kElements / 20);
  put_all(1);
  EXPECT_EQ(close(), NC_NOERR);
  expect_whole();
  client_.reset();
  service_.reset();
  ::umount(folder_.c_str());
}

TEST_F(SpillTest, WhatIsDamagedThereIsNamed) {
  start(kElements / 10);
  Standstill standstill;
  put_all(1);
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder_)) {
    if (!entry.path().filename().string().starts_with("log.")) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3 << 20);
    file.write("damaged", 7);
  }
  standstill.go_on();
  EXPECT_NE(close(), NC_NOERR);
  const auto report = this->report();
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_FALSE(report.failures.front().missing.empty());
  EXPECT_EQ(report.bytes_pending, 0u);
}

}  // namespace
}  // namespace staging
