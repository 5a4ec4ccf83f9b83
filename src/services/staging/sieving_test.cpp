// SPDX-License-Identifier: BSD-3-Clause
// Pages with holes between what was written: they are written whole, and what is in the file in the holes stays.
#include <services/staging/testing.hpp>

#include <algorithm>
#include <atomic>
#include <tuple>

namespace staging {
namespace {

using testing::contents;
using testing::dim;
using testing::IoThread;
using testing::program_file;
using testing::Service;
using testing::var;

constexpr std::int64_t kY = 60, kX = 211, kFew = 3, kOdd = 777;
const VariableLayout kGrid{0, 8, false, {kY, kX}}, kHistory{1, 8, true, {0, kY, kX}},
    kFewOfRecord{2, 2, true, {0, kFew}}, kClock{3, 4, true, {0}}, kLast{4, 4, false, {kOdd, kFew}};

std::vector<Definition> definitions(bool fills, bool has_records) {
  Definition fill;
  fill.kind = DefinitionKind::kSetFill, fill.type = fills ? NC_FILL : NC_NOFILL;
  const std::int32_t time = has_records ? 0 : 1;
  return {fill,
          dim("time", NC_UNLIMITED),
          dim("y", kY),
          dim("x", kX),
          dim("few", kFew),
          dim("odd", kOdd),
          var("grid", NC_DOUBLE, {1, 2}),
          var("history", NC_DOUBLE, {time, 1, 2}),
          var("few_of_record", NC_SHORT, {time, 3}),
          var("clock", NC_FLOAT, {time}),
          var("last", NC_INT, {4, 3})};
}

/// Elements here and there, in order.
std::vector<Box> scattered(const VariableLayout &layout, std::int64_t records, std::mt19937 &random) {
  std::vector<Box> boxes, one;
  const auto elements = layout.extent_elements() * (layout.is_record ? records : 1);
  const std::int64_t most = 1 + static_cast<std::int64_t>(random() % 150);
  const auto step = [&] { return static_cast<std::int64_t>(random()) % most; };
  for (auto at = step(); at < elements; at += 2 + step()) {
    one.clear();
    append_boxes(layout, {at, at + 1}, one);
    boxes.push_back(one.front());
  }
  return boxes;
}

/// The same file natively.
class Twin {
 public:
  explicit Twin(std::string path) : path_(std::move(path)) {}
  void create(int cmode, const std::vector<Definition> &definitions) {
    EndDefArgs args;
    args.definitions = definitions;
    ASSERT_EQ(IoThread::get().run([&] {
      file_ = NativeFile::create(program_file(path_), cmode, {}).file;
      return file_->end_define(args);
    }),
              NC_NOERR);
  }
  void open() {
    IoThread::get().run([&] { file_ = NativeFile::open(program_file(path_, O_RDWR), NC_WRITE, {}).file; });
    ASSERT_NE(file_, nullptr);
  }
  void put(const VariableLayout &layout, const std::vector<Box> &boxes, std::vector<std::byte> data) {
    ASSERT_EQ(IoThread::get().run([&] { return file_->write(layout.varid, boxes, data.data()); }), NC_NOERR);
  }
  void close() {
    ASSERT_EQ(IoThread::get().run([&] { return file_->close(0); }), NC_NOERR);
    file_.reset();
  }
  const std::string &path() const { return path_; }

 private:
  const std::string path_;
  std::unique_ptr<NativeFile> file_;
};

/// One that is staged.
class Staged {
 public:
  Staged(Client &client, std::string path) : client_(client), path_(std::move(path)), order_(client.servers()) {}
  HeaderResult create(int cmode, std::vector<Definition> definitions) {
    return testing::create_file(client_, token_, path_, std::move(definitions), cmode);
  }
  void open() {
    const auto file = program_file(path_, O_RDWR);
    const auto opened = client_.open({token_, path_, NC_WRITE, {}}, file.get());
    ASSERT_TRUE(opened.ok() && opened->nc_error == NC_NOERR);
    records_ = opened->num_records;
  }
  void put(const VariableLayout &layout, const std::vector<Box> &boxes, std::vector<std::byte> data) {
    PieceList pieces;
    for (const auto &box : boxes) {
      pieces.append(Piece{layout.varid, box.start, box.count, {}});
      if (layout.is_record) records_ = std::max(records_, box.start[0] + box.count[0]);
    }
    const Item item{&layout, pieces, data};
    const auto written = client_.write(token_, records_, order_, {&item, 1});
    ASSERT_TRUE(written.ok()) << written.error().message;
    ASSERT_EQ(*written, NC_NOERR);
    order_.know(order_.end_call());
  }
  void sync() {
    const auto synced = client_.sync(token_, records_);
    ASSERT_TRUE(synced.ok() && *synced == NC_NOERR);
  }
  void close() {
    const auto closed = client_.close(token_, records_, Closing::kDurable, order_);
    ASSERT_TRUE(closed.ok() && *closed == NC_NOERR);
    token_ = nessie::random_u64();
    order_ = Order(client_.servers());
  }
  const std::string &path() const { return path_; }

 private:
  Client &client_;
  const std::string path_;
  FileToken token_ = nessie::random_u64();
  Order order_;
  std::int64_t records_ = 0;
};

class Sieving : public ::testing::TestWithParam<std::tuple<int, Mode, std::uint64_t, int>> {
 protected:
  void SetUp() override {
    const auto [servers, mode, memory, cmode] = GetParam();
    service_ = std::make_unique<Service>(servers, mode, memory, "inproc", std::chrono::seconds(30), true);
    client_ = service_->client();
    ASSERT_NE(client_, nullptr);
  }
  int cmode() const { return NC_CLOBBER | std::get<3>(GetParam()); }
  std::vector<std::byte> values(const VariableLayout &layout, std::size_t elements) {
    std::vector<std::byte> data(elements * static_cast<std::size_t>(layout.element_bytes));
    for (auto &byte : data) byte = static_cast<std::byte>(random_());
    return data;
  }
  static std::vector<VariableLayout> layouts(bool has_records) {
    if (has_records) return {kGrid, kHistory, kFewOfRecord, kClock, kLast};
    return {kGrid, kLast};
  }
  /// To all variables, through the staged file, or one of them after the other, and natively.
  void scatter(std::span<Staged *const> files, Twin &twin, std::int64_t records, bool has_records = true) {
    for (const auto &layout : layouts(has_records))
      for (auto *file : files) {
        const auto boxes = scattered(layout, records, random_);
        const auto data = values(layout, boxes.size());
        file->put(layout, boxes, data);
        twin.put(layout, boxes, data);
      }
  }
  void fill(Twin &twin, std::int64_t records) {
    for (const auto &layout : layouts(true)) {
      Box all{Extents(layout.dims(), 0), layout.shape};
      if (layout.is_record) all.count[0] = records;
      twin.put(layout, {all}, values(layout, static_cast<std::size_t>(all.elements())));
    }
  }
  static void expect_same(const std::string &staged, const std::string &natively) {
    const auto mine = contents(staged), theirs = contents(natively);
    ASSERT_EQ(mine.size(), theirs.size());
    const auto [differs, same] = std::mismatch(mine.begin(), mine.end(), theirs.begin());
    ASSERT_TRUE(differs == mine.end()) << "the files differ at offset " << differs - mine.begin();
  }

  std::unique_ptr<Service> service_;
  std::unique_ptr<Client> client_;
  std::mt19937 random_{3};
};

TEST_P(Sieving, HolesOfANewFileAreAsNatively) {
  for (const bool has_records : {true, false})
    for (const bool fills : {false, true}) {
      const auto name = service_->file(std::string(fills ? "fills" : "new") + (has_records ? "_records" : ""));
      Twin twin(name + ".native.nc");
      Staged file(*client_, name + ".nc");
      twin.create(cmode(), definitions(fills, has_records));
      file.create(cmode(), definitions(fills, has_records));
      Staged *const files[] = {&file};
      for (const std::int64_t records : {1, 3, 7, 4}) {
        scatter(files, twin, records, has_records);
        if (records == 3) file.sync();
        if (HasFatalFailure()) return;
      }
      file.close();
      twin.close();
      expect_same(file.path(), twin.path());
    }
}

TEST_P(Sieving, WhatWasInTheHolesBeforeStays) {
  Twin twin(service_->file("native.nc"));
  Staged file(*client_, service_->file("staged.nc"));
  twin.create(cmode(), definitions(false, true));
  fill(twin, 3);
  twin.close();
  std::filesystem::copy_file(twin.path(), file.path());
  for (const std::int64_t records : {3, 8}) {
    file.open();
    twin.open();
    Staged *const files[] = {&file};
    scatter(files, twin, records);
    file.sync();
    scatter(files, twin, records + 2);
    file.close();
    twin.close();
    expect_same(file.path(), twin.path());
    if (HasFatalFailure()) return;
  }
}

TEST_P(Sieving, HandlesWriteIntoTheHolesOfEachOther) {
  Twin twin(service_->file("native.nc"));
  Staged one(*client_, service_->file("staged.nc")), other(*client_, one.path());
  twin.create(cmode(), definitions(false, true));
  fill(twin, 2);
  twin.close();
  std::filesystem::copy_file(twin.path(), one.path());
  twin.open();
  one.open();
  other.open();
  Staged *const files[] = {&one, &other};
  for (const std::int64_t records : {2, 5, 6, 4}) {
    scatter(files, twin, records);
    if (records == 6) other.sync();
    if (HasFatalFailure()) return;
  }
  other.close();
  one.close();
  twin.close();
  expect_same(one.path(), twin.path());
}

TEST_P(Sieving, ANativeWriterBesideKeepsWhatItPutsIntoTheHoles) {
  Twin twin(service_->file("native.nc"));
  Staged file(*client_, service_->file("staged.nc"));
  twin.create(cmode(), definitions(true, true));
  file.create(cmode(), definitions(true, true));
  Twin beside(file.path());
  Staged *const files[] = {&file};
  for (const std::int64_t records : {2, 4, 5}) {
    scatter(files, twin, records);
    ASSERT_TRUE(client_->settle({identity_of(file.path()), {}, 1}).ok());
    beside.open();
    for (const auto &layout : {kGrid, kLast}) {
      const auto boxes = scattered(layout, 0, random_);
      const auto data = values(layout, boxes.size());
      beside.put(layout, boxes, data);
      twin.put(layout, boxes, data);
    }
    beside.close();
    if (HasFatalFailure()) return;
  }
  file.close();
  twin.close();
  expect_same(file.path(), twin.path());
}

INSTANTIATE_TEST_SUITE_P(Servers, Sieving,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Values(Mode::kCaching, Mode::kDirect),
                                            ::testing::Values(64 << 20, 64 << 10),
                                            ::testing::Values(0, NC_64BIT_OFFSET, NC_64BIT_DATA)),
                         [](const auto &info) {
                           const auto cmode = std::get<3>(info.param);
                           return std::string(std::get<1>(info.param) == Mode::kCaching ? "Caching" : "Direct") +
                                  (std::get<2>(info.param) > (1 << 20) ? "Large" : "Small") +
                                  std::to_string(std::get<0>(info.param)) + "Cdf" +
                                  (cmode == 0                 ? "1"
                                   : cmode == NC_64BIT_OFFSET ? "2"
                                                              : "5");
                         });

/// A program of the run writes the odd elements of a line past the servers, as soon as it is let in, while the even
/// ones are staged.
TEST(SievingBeside, WhoWritesPastAServerInTheMiddleOfAWriteLosesNothing) {
  constexpr std::int64_t kLength = 128 << 10;
  const VariableLayout line{0, 8, false, {kLength}};
  Service service(1, Mode::kCaching, 256 << 10, "inproc", std::chrono::seconds(30), true);
  const auto client = service.client(), other = service.client();
  std::vector<Box> even;
  for (std::int64_t i = 0; i < kLength; i += 2) even.push_back({{i}, {1}});
  const std::vector<std::byte> ones(even.size() * 8, std::byte{0x11});
  const std::string twos(8, '\x22');
  for (int round = 0; round < 6; ++round) {
    Staged file(*client, service.file("line" + std::to_string(round) + ".nc"));
    const auto header = file.create(NC_CLOBBER | NC_64BIT_DATA, {dim("x", kLength), var("line", NC_DOUBLE, {0})});
    std::int64_t begin = 0;
    for (const auto byte : std::span(header.header).last(8)) begin = begin << 8 | std::to_integer<int>(byte);
    std::atomic<bool> has_begun = false, is_over = false;
    std::thread writer([&] {
      has_begun = true;
      do file.put(line, even, ones);
      while (!is_over);
    });
    while (!has_begun) std::this_thread::yield();
    ASSERT_TRUE(other->settle({identity_of(file.path()), {}, 1}).ok());
    const auto past = program_file(file.path(), O_RDWR);
    for (std::int64_t i = 1; i < kLength; i += 2)
      ASSERT_EQ(::pwrite(past.get(), twos.data(), twos.size(), begin + i * 8), 8);
    is_over = true;
    writer.join();
    file.close();
    auto bytes = contents(file.path());
    bytes.resize(static_cast<std::size_t>(begin + kLength * 8));
    for (std::int64_t i = 0; i < kLength; ++i)
      ASSERT_EQ(bytes[static_cast<std::size_t>(begin + i * 8)], i % 2 == 0 ? '\x11' : '\x22') << "element " << i;
  }
}

}  // namespace
}  // namespace staging
