// SPDX-License-Identifier: BSD-3-Clause
// Reads, and the pages that servers keep for them.
#include <services/staging/board.h>
#include <services/staging/twins_testing.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <algorithm>
#include <tuple>

namespace staging {
namespace {

using testing::IoThread;
using testing::program_file;
using testing::Schema;
using testing::Service;
using testing::StagingTest;
using testing::Twins;

constexpr std::uint64_t kMuch = 64 << 20, kLittle = 64 << 10;

/// Every value differs from what was there before.
class Values {
 public:
  std::vector<std::byte> next(const VariableLayout &layout, const Piece &piece) {
    return testing::random_data(layout, piece, random_);
  }

 private:
  std::mt19937 random_{7};
};

Piece all_of(const VariableLayout &layout, std::int64_t records = 0) {
  Piece piece{layout.varid, Extents(layout.dims(), 0), layout.shape, {}};
  if (layout.is_record) piece.count[0] = records;
  return piece;
}

/// What a variable holds.
struct Model {
  VariableLayout layout;
  std::vector<std::byte> bytes;

  Model(VariableLayout of, std::int64_t records) : layout(std::move(of)) {
    bytes.resize(static_cast<std::size_t>(all_of(layout, records).elements() * layout.element_bytes));
  }
  template <class Each> void each_run(const Piece &piece, Each each) {
    std::size_t at = 0;
    for (RunCursor cursor(layout, piece); !cursor.done(); cursor.consume(cursor.run().size())) {
      const auto size = static_cast<std::size_t>(cursor.run().size() * layout.element_bytes);
      each(bytes.data() + cursor.run().begin * layout.element_bytes, at, size);
      at += size;
    }
  }
  void put(const Piece &piece, const std::vector<std::byte> &data) {
    each_run(piece, [&](std::byte *to, auto at, auto size) { std::copy_n(data.data() + at, size, to); });
  }
  std::vector<std::byte> get(const Piece &piece) {
    std::vector<std::byte> data(static_cast<std::size_t>(piece.elements() * layout.element_bytes));
    each_run(piece, [&](std::byte *from, auto at, auto size) { std::copy_n(from, size, data.data() + at); });
    return data;
  }
};

/// A file of the schema that a client has open, or several have.
class Handle {
 public:
  Handle(Client &client, std::string path) : client_(client), path_(std::move(path)), order_(client.servers()) {}

  void create() { testing::create_file(client_, token_, path_, Schema::definitions()); }
  void open(int omode = NC_WRITE, std::uint32_t processes = 1) {
    const auto file = program_file(path_, omode == NC_WRITE ? O_RDWR : O_RDONLY);
    const auto opened = client_.open({token_, path_, omode, {}, {}, processes}, file.get());
    ASSERT_TRUE(opened.ok() && opened->nc_error == NC_NOERR);
    records = std::max(records, opened->num_records);
  }
  void put(Model &model, const Piece &piece) {
    const auto data = values_.next(model.layout, piece);
    model.put(piece, data);
    if (model.layout.is_record) records = std::max(records, piece.start[0] + piece.count[0]);
    auto copy = data;
    const Item item{&model.layout, piece, copy};
    const auto written = client_.write(token_, records, order_, {&item, 1});
    ASSERT_TRUE(written.ok() && *written == NC_NOERR);
    order_.know(order_.end_call());
  }
  /// The native code.
  int get(const VariableLayout &layout, const PieceList &pieces, std::span<std::byte> data, bool together = false) {
    order_.is_collective = together;
    const Item item{&layout, pieces, data};
    const auto got = client_.read(token_, records, order_, {&item, 1});
    order_.is_collective = false;
    EXPECT_TRUE(got.ok()) << got.error().message;
    return got.ok() ? *got : NC_EREAD;
  }
  void expect(Model &model, const Piece &piece, bool together = false) {
    auto data = values_.next(model.layout, piece);
    ASSERT_EQ(get(model.layout, piece, data, together), NC_NOERR);
    ASSERT_EQ(data, model.get(piece));
  }
  void sync() {
    const auto synced = client_.sync(token_, records);
    ASSERT_TRUE(synced.ok() && *synced == NC_NOERR);
  }
  void close() {
    const auto closed = client_.close(token_, records, Closing::kDurable, order_);
    ASSERT_TRUE(closed.ok() && *closed == NC_NOERR);
    token_ = nessie::random_u64();
    order_ = Order(client_.servers());
  }
  const std::string &path() const { return path_; }
  std::int64_t records = 0;

 private:
  Client &client_;
  const std::string path_;
  FileToken token_ = nessie::random_u64();
  Order order_;
  Values values_;
};

/// A program that no server knows of writes to the file, when the file system's clock has gone on since the last time.
void write_past(const std::string &path, Model &model, const Piece &piece) {
  struct stat status {};
  timespec now{};
  do {
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  } while (std::tie(now.tv_sec, now.tv_nsec) <= std::tie(status.st_ctim.tv_sec, status.st_ctim.tv_nsec));
  auto data = Values().next(model.layout, piece);
  for (auto &byte : data) byte = ~byte;
  model.put(piece, data);
  const int error = IoThread::get().run([&] {
    const auto opened = NativeFile::open(program_file(path, O_RDWR), NC_WRITE, {});
    const int written = opened.file->write(piece, data.data());
    return written != NC_NOERR ? written : opened.file->close(0);
  });
  ASSERT_EQ(error, NC_NOERR);
}

class Reads : public ::testing::TestWithParam<std::tuple<int, Mode, std::uint64_t>> {
 protected:
  void SetUp() override {
    const auto [servers, mode, memory] = GetParam();
    service_ = std::make_unique<Service>(servers, mode, memory, "inproc", std::chrono::seconds(30), true);
    client_ = service_->client();
    ASSERT_NE(client_, nullptr);
  }
  std::uint64_t bytes_read() {
    std::uint64_t sum = 0;
    for (int server = 0; server < std::get<0>(GetParam()); ++server) sum += client_->report(server)->bytes_read;
    return sum;
  }
  template <class State> void await(State state) {
    const auto deadline = nessie::Deadline::in(std::chrono::seconds(20));
    while (!state() && !deadline.passed()) std::this_thread::yield();
    EXPECT_TRUE(state());
  }
  /// Of a file of whose contents the servers keep nothing.
  template <class File> void expect_from_file_each_time(File &file) {
    for (int i = 1; i < 4; ++i) {
      file.expect(box_, all_of(box_.layout));
      EXPECT_GE(bytes_read(), i * box_.bytes.size());
    }
  }
  bool has_much() const { return std::get<2>(GetParam()) == kMuch; }
  /// In direct mode no memory is made resident beforehand, and writes take the place of what was written before.
  bool is_caching() const { return std::get<1>(GetParam()) == Mode::kCaching; }
  bool is_alone() const { return std::get<0>(GetParam()) == 1; }
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  Piece any_piece(const VariableLayout &layout, std::int64_t records) {
    Piece piece{layout.varid, {}, {}, {}};
    const bool is_strided = pick(0, 3) == 0, is_large = pick(0, 1) == 0;
    for (std::size_t d = 0; d < layout.shape.size(); ++d) {
      const auto size = layout.is_record && d == 0 ? records : layout.shape[d];
      const auto stride = is_strided ? pick(1, 3) : 1, start = is_large ? 0 : pick(0, size - 1);
      const auto most = (size - start + stride - 1) / stride;
      piece.start.push_back(start);
      piece.count.push_back(is_large ? most : pick(1, most));
      if (is_strided) piece.stride.push_back(stride);
    }
    return piece;
  }

  std::unique_ptr<Service> service_;
  std::unique_ptr<Client> client_;
  std::mt19937 random_{2024};
  static constexpr std::int64_t kRecords = 3;
  Model box_{Schema::box(), 0}, history_{Schema::history(), kRecords};
};

TEST_P(Reads, WhatWasWrittenIsReadFromMemoryWhenItIsInTheFile) {
  Handle file(*client_, service_->file("kept.nc"));
  file.create();
  file.put(box_, all_of(box_.layout));
  file.put(history_, all_of(history_.layout, kRecords));
  file.sync();
  file.expect(box_, all_of(box_.layout));
  file.expect(history_, all_of(history_.layout, kRecords));
  file.expect(box_, {0, {3, 4, 5}, {20, 30, 40}, {}});
  file.expect(history_, {2, {1, 100, 100}, {2, 1, 1}, {}});
  if (has_much() && is_alone() && is_caching()) { EXPECT_EQ(bytes_read(), 0u); }
  file.close();
}

TEST_P(Reads, PagesOfAClosedFileAreThereForWhoeverOpensItAgain) {
  Handle file(*client_, service_->file("again.nc"));
  file.create();
  file.put(box_, all_of(box_.layout));
  file.put(history_, all_of(history_.layout, kRecords));
  file.close();
  for (const int omode : {NC_NOWRITE, NC_WRITE}) {
    file.open(omode);
    file.expect(box_, all_of(box_.layout));
    file.expect(history_, all_of(history_.layout, kRecords));
    file.close();
  }
  if (has_much() && is_alone() && is_caching()) { EXPECT_EQ(bytes_read(), 0u); }
}

TEST_P(Reads, BlocksThatAllProcessesReadAreReadFromTheFileOnce) {
  Handle file(*client_, service_->file("blocks.nc"));
  file.create();
  file.put(history_, all_of(history_.layout, kRecords));
  file.put(box_, all_of(box_.layout));
  file.close();
  write_past(file.path(), box_, all_of(box_.layout));
  const auto before = bytes_read();
  file.open(NC_NOWRITE, 8);
  for (std::int64_t z : {0, 1})
    for (std::int64_t y : {0, 1})
      for (std::int64_t x : {0, 1})
        file.expect(box_,
                    {0,
                     {z * Schema::kZ / 2, y * Schema::kY / 2, x * Schema::kX / 2},
                     {Schema::kZ / 2, Schema::kY / 2, Schema::kX / 2},
                     {}},
                    true);
  EXPECT_GE(bytes_read() - before, box_.bytes.size());
  const auto everything = box_.bytes.size() + 2 + history_.bytes.size();  // the other variables are read ahead
  if (has_much() && is_alone()) await([&] { return bytes_read() - before == everything; });
  file.expect(box_, all_of(box_.layout));
  if (has_much() && is_alone()) { EXPECT_EQ(bytes_read() - before, everything); }
  file.close();
}

TEST_P(Reads, WhatAMarchComesToNextIsReadAhead) {
  Handle file(*client_, service_->file("march.nc"));
  file.create();
  file.put(history_, all_of(history_.layout, kRecords));
  file.put(box_, all_of(box_.layout));
  file.close();
  write_past(file.path(), box_, all_of(box_.layout));
  const auto before = bytes_read();
  file.open(NC_NOWRITE);
  const auto record = [](std::int64_t i) { return Piece{2, {i, 0, 0}, {1, Schema::kRecordY, Schema::kRecordX}, {}}; };
  file.expect(history_, record(0));
  file.expect(history_, record(1));
  if (has_much() && is_alone()) await([&] { return bytes_read() - before == history_.bytes.size(); });
  file.expect(history_, record(2));
  if (has_much() && is_alone()) { EXPECT_EQ(bytes_read() - before, history_.bytes.size()); }
  file.close();
}

TEST(Marches, GoOnWithinThePartThatTheServerIsAskedFor) {
  std::mt19937 random{5};
  nessie::Budget process;
  nessie::Budget::Account account(process, "pages");
  PageCache cache(kMuch, account);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 200; ++i) {
    Variable layout{
        {static_cast<int>(pick(0, 9)), 8, pick(0, 1) == 0, {pick(1, 90), pick(1, 90), pick(1, 900)}}, "", 0};
    const auto servers = static_cast<int>(pick(1, 5));
    const Domains domains(layout, servers);
    const auto variable = cache.adopt(layout);
    for (int server = 0; server < servers; ++server) {
      const auto own = domains.part_of(server);
      if (own.size() == 0) continue;
      for (const auto element : {own.begin, own.end - 1, pick(own.begin, own.end - 1)}) {
        std::vector<Box> boxes;
        append_boxes(layout, {element, element + 1}, boxes);
        ASSERT_EQ(domains.split({layout.varid, boxes[0].start, boxes[0].count, {}}).at(0).server, server);
      }
      const auto index = pick(0, 3), next = next_page(*variable, index, own);
      ASSERT_GT(next, index);
    }
  }
}

TEST(Marches, AreToldFromReadsHereAndThere) {
  March march;
  EXPECT_FALSE(march.note(1, 7, 8, false));
  EXPECT_FALSE(march.note(1, 3, 3, false));
  EXPECT_TRUE(march.note(1, 9, 12, true)) << "on from the first one";
  EXPECT_TRUE(march.note(1, 12, 13, true)) << "in the page in which another one ended";
  EXPECT_TRUE(march.note(2, 0, 4, false)) << "the next variable";
  EXPECT_FALSE(march.note(0, 0, 1, false)) << "back to the beginning";
  March other;
  EXPECT_FALSE(other.note(1, 0, 3, false));
  EXPECT_FALSE(other.note(2, 0, 4, false)) << "the one before has not been read to its end";
}

TEST_P(Reads, ASingleElementOfALargeVariableIsReadAlone) {
  Handle file(*client_, service_->file("single.nc"));
  file.create();
  file.put(history_, all_of(history_.layout, kRecords));
  file.close();
  write_past(file.path(), history_, all_of(history_.layout, kRecords));
  const auto before = bytes_read();
  file.open(NC_NOWRITE);
  for (std::int64_t i = 0; i < 50; ++i)
    file.expect(history_, {2, {pick(0, kRecords - 1), pick(0, 199), pick(0, 209)}, {1, 1, 1}, {}});
  if (has_much()) { EXPECT_LE(bytes_read() - before, 50u * 8); }
  file.close();
}

TEST_P(Reads, SeeWhatAProgramThatNoServerKnowsOfHasWritten) {
  Handle file(*client_, service_->file("past.nc"));
  file.create();
  file.put(box_, all_of(box_.layout));
  file.put(history_, all_of(history_.layout, kRecords));
  file.close();
  file.open();
  for (int i = 0; i < 3; ++i) {
    file.expect(box_, all_of(box_.layout));
    file.expect(history_, all_of(history_.layout, kRecords));
    write_past(file.path(), box_, any_piece(box_.layout, 0));
    write_past(file.path(), history_, any_piece(history_.layout, kRecords));
    file.expect(box_, all_of(box_.layout));
    file.expect(history_, all_of(history_.layout, kRecords));
    if (i == 1) file.put(box_, any_piece(box_.layout, 0));
    if (i == 1) file.sync();
  }
  file.close();
  write_past(file.path(), box_, any_piece(box_.layout, 0));
  file.open();
  file.expect(box_, all_of(box_.layout));
  file.close();
}

TEST_P(Reads, SeeWhatWasWrittenThroughAnotherHandle) {
  Handle one(*client_, service_->file("handles.nc")), other(*client_, one.path());
  one.create();
  one.put(box_, all_of(box_.layout));
  one.put(history_, all_of(history_.layout, kRecords));
  other.open();
  for (int i = 0; i < 4; ++i) {
    one.expect(box_, all_of(box_.layout));
    other.expect(box_, all_of(box_.layout));
    one.expect(history_, all_of(history_.layout, kRecords));
    other.put(box_, any_piece(box_.layout, 0));
    other.put(history_, any_piece(history_.layout, kRecords));
    if (i == 2) other.sync();
    one.expect(box_, all_of(box_.layout));
    one.expect(history_, all_of(history_.layout, kRecords));
    one.put(box_, any_piece(box_.layout, 0));
    other.expect(box_, all_of(box_.layout));
  }
  other.close();
  one.expect(box_, all_of(box_.layout));
  one.close();
}

TEST_P(Reads, NoPagesAreKeptOfAFileToWhichNativePnetcdfWrites) {
  Handle file(*client_, service_->file("beside.nc"));
  file.create();
  file.put(box_, all_of(box_.layout));
  file.sync();
  const auto identity = identity_of(file.path());
  for (int server = 0; server < std::get<0>(GetParam()); ++server) {
    const nessie::Fd fd(::open((service_->board(server) + NESSIE_BOARD_COUNTS_SUFFIX).c_str(), O_RDWR | O_CLOEXEC));
    auto *writes = static_cast<nessie_board_writes *>(
        ::mmap(nullptr, sizeof(nessie_board_writes), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    ASSERT_NE(static_cast<void *>(writes), MAP_FAILED);
    writes->beside[nessie_board_word_of(identity.device, identity.inode)] |=
        nessie_board_bit_of(identity.device, identity.inode);
    ::munmap(writes, sizeof *writes);
  }
  expect_from_file_each_time(file);
  file.close();
}

TEST_P(Reads, ANativeWriterWhoSeesNoBoardSaysSo) {
  Handle file(*client_, service_->file("settled.nc"));
  file.create();
  file.put(box_, all_of(box_.layout));
  file.sync();
  ASSERT_TRUE(client_->settle({identity_of(file.path()), {}, 1}).ok());
  expect_from_file_each_time(file);
  file.close();
}

TEST_P(Reads, BehindTheLastRecordGiveTheNativeCode) {
  Handle file(*client_, service_->file("behind.nc"));
  file.create();
  file.put(history_, all_of(history_.layout, kRecords));
  file.sync();
  const Piece behind{2, {kRecords, 0, 0}, {1, Schema::kRecordY, Schema::kRecordX}, {}};
  std::vector<std::byte> data(static_cast<std::size_t>(behind.elements() * 8)), natively = data;
  const Variable variable{history_.layout, "", NC_DOUBLE};
  const int error = IoThread::get().run([&] {
    const auto opened = NativeFile::open(program_file(file.path(), O_RDONLY), NC_NOWRITE, {});
    return opened.file->read(variable, behind, kRecords, natively.data());
  });
  EXPECT_NE(error, NC_NOERR);
  EXPECT_EQ(file.get(history_.layout, behind, data), error);
  file.close();
}

TEST_P(Reads, AFileThatIsEmptiedReadsAsItDoesNatively) {
  Handle file(*client_, service_->file("emptied.nc"));
  file.create();
  file.put(box_, all_of(box_.layout));
  file.sync();
  file.expect(box_, all_of(box_.layout));
  std::filesystem::resize_file(file.path(), 0);
  auto data = Values().next(box_.layout, all_of(box_.layout));
  ASSERT_EQ(file.get(box_.layout, all_of(box_.layout), data), NC_NOERR);
  EXPECT_EQ(std::ranges::count(data, std::byte{0}), std::ssize(data));
  file.close();
}

TEST_P(Reads, AFileThatIsCutToItsHeaderReadsAsItDoesNatively) {
  Handle file(*client_, service_->file("cut.nc"));
  file.create();
  file.put(box_, all_of(box_.layout));
  file.put(history_, all_of(history_.layout, kRecords));
  file.sync();
  file.expect(box_, all_of(box_.layout));
  file.expect(history_, all_of(history_.layout, kRecords));
  std::filesystem::resize_file(file.path(), 512);
  for (auto *model : {&box_, &history_}) {
    const auto piece = all_of(model->layout, kRecords);
    auto data = Values().next(model->layout, piece), natively = data;
    const int error = IoThread::get().run([&] {
      const auto opened = NativeFile::open(program_file(file.path(), O_RDONLY), NC_NOWRITE, {});
      return opened.file->read(Variable{model->layout, "", NC_INT}, piece, kRecords, natively.data());
    });
    EXPECT_EQ(file.get(model->layout, piece, data, true), error);
    if (error == NC_NOERR) { EXPECT_EQ(data, natively); }
  }
  Handle other(*client_, service_->file("whole.nc"));
  other.create();
  other.put(box_, all_of(box_.layout));
  other.expect(box_, all_of(box_.layout));
  other.close();
  file.close();
}

TEST_P(Reads, ManyPiecesOfOneRequestComeInTheirOrder) {
  Handle file(*client_, service_->file("pieces.nc"));
  file.create();
  file.put(history_, all_of(history_.layout, kRecords));
  file.put(box_, all_of(box_.layout));
  file.sync();
  for (const bool together : {false, true}) {
    PieceList pieces;
    std::vector<std::byte> expected;
    for (int i = 0; i < 3000; ++i) {
      const Piece piece{0, {pick(0, Schema::kZ - 1), pick(0, Schema::kY - 1), pick(0, Schema::kX - 3)}, {1, 1, 3}, {}};
      pieces.append(piece);
      const auto data = box_.get(piece);
      expected.insert(expected.end(), data.begin(), data.end());
    }
    auto data = expected;
    std::ranges::fill(data, std::byte{});
    ASSERT_EQ(file.get(box_.layout, pieces, data, together), NC_NOERR);
    ASSERT_EQ(data, expected);
  }
  file.close();
}

TEST_P(Reads, WhateverWasDoneBeforeTheDataAreRight) {
  Handle file(*client_, service_->file("any.nc"));
  file.create();
  file.put(box_, all_of(box_.layout));
  file.put(history_, all_of(history_.layout, kRecords));
  for (int i = 0; i < 150; ++i) {
    auto &model = pick(0, 1) == 0 ? box_ : history_;
    switch (pick(0, 9)) {
      case 0: file.sync(); break;
      case 1: file.close(), file.open(NC_WRITE, pick(0, 1) == 0 ? 1 : 8); break;
      case 2:
      case 3:
      case 4: file.put(model, any_piece(model.layout, kRecords)); break;
      default: file.expect(model, any_piece(model.layout, kRecords), pick(0, 1) == 0);
    }
    if (HasFatalFailure()) return;
  }
  file.close();
}

INSTANTIATE_TEST_SUITE_P(Servers, Reads,
                         ::testing::Combine(::testing::Values(1, 3), ::testing::Values(Mode::kCaching, Mode::kDirect),
                                            ::testing::Values(kMuch, kLittle)),
                         [](const auto &info) {
                           return std::string(std::get<1>(info.param) == Mode::kCaching ? "Caching" : "Direct") +
                                  (std::get<2>(info.param) == kMuch ? "Large" : "Small") +
                                  std::to_string(std::get<0>(info.param));
                         });

TEST_P(StagingTest, ReadsSeeWhatWasWrittenBefore) {
  Twins file(*service_, *client_, "reads");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.put(Schema::history(), all(Schema::history(), 2));
  for (int i = 0; i < 12; ++i) {
    file.put(Schema::box(), any_piece(Schema::box(), 0));
    file.expect_same(Schema::box(), any_piece(Schema::box(), 0));
    file.put(Schema::history(), any_piece(Schema::history(), 2));
    file.expect_same(Schema::history(), any_piece(Schema::history(), 2));
  }
  file.close(true);
  file.expect_same_files();
}

TEST_P(StagingTest, RecordsOfOneServerCanBeReadFromAllOthers) {
  Twins file(*service_, *client_, "records");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::history(), {0, {4, 0, 0}, {1, 3, Schema::kRecordX}, {}});
  file.expect_same(Schema::history(), all(Schema::history(), 4));
  file.expect_same(Schema::history(), {0, {4, 0, 0}, {1, 3, Schema::kRecordX}, {}});
  file.close(true);
  file.expect_same_files();
}

TEST_P(StagingTest, WhatLiesBehindTheEndOfAFileReadsAsZeros) {
  Twins file(*service_, *client_, "cut");
  file.create();
  file.enddef(Schema::definitions());
  file.close(true);
  const Variable box{Schema::box(), "", 0};
  std::vector<std::byte> data(Schema::kZ * Schema::kY * Schema::kX * 4, std::byte{0xff});
  const int error = IoThread::get().run([&] {
    const auto opened = NativeFile::open(program_file(file.path(), O_RDONLY), NC_NOWRITE, {});
    return opened.file->read(box, all(Schema::box(), 0), 0, data.data());
  });
  EXPECT_EQ(error, NC_NOERR);
  EXPECT_EQ(std::ranges::count(data, std::byte{0}), std::ssize(data));
}

}  // namespace
}  // namespace staging
