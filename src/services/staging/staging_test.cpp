// SPDX-License-Identifier: BSD-3-Clause
// The service from end to end: client, servers and native files, in one process.
#include <services/staging/board.h>
#include <services/staging/testing.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <cstddef>
#include <tuple>

namespace staging {
namespace {

using testing::contents;
using testing::IoThread;
using testing::program_file;
using testing::random_data;
using testing::Schema;
using testing::Service;

/// A file that is written through Nessie and, with the same calls, natively.
class Twins {
 public:
  Twins(Service &service, Client &client, const std::string &name)
      : client_(client), staged_(service.file(name + ".staged.nc")), native_(service.file(name + ".native.nc")) {}

  void create(int cmode = NC_CLOBBER | NC_64BIT_DATA) {
    const auto file = program_file(staged_);
    auto created = client_.create({token_, staged_, cmode, {}}, file.get());
    ASSERT_TRUE(created.ok()) << created.error().message;
    ASSERT_EQ(*created, NC_NOERR);
    IoThread::get().run([&] { twin_ = NativeFile::create(program_file(native_), cmode, {}).file; });
  }

  /// Again and again, until the server has carried out what was sent before.
  void send_ahead(const std::vector<Definition> &definitions) {
    while (!client_.define({token_, definitions})) std::this_thread::yield();
    EXPECT_EQ(IoThread::get().run([&] { return twin_->amend(definitions); }), NC_NOERR);
  }

  HeaderResult enddef(std::vector<Definition> definitions, bool first = true) {
    EndDefArgs args;
    args.file = token_;
    args.definitions = std::move(definitions);
    args.num_records = num_records;
    order_ = Order(client_.servers());
    auto ended = client_.enddef(args, first);
    EXPECT_TRUE(ended.ok() && ended->nc_error == NC_NOERR);
    EXPECT_EQ(IoThread::get().run([&] { return twin_->end_define(args); }), NC_NOERR);
    return ended.ok() ? *ended : HeaderResult{};
  }

  void put(const VariableLayout &layout, Piece piece) {
    piece.varid = layout.varid;
    auto data = random_data(layout, piece, random_);
    if (layout.is_record) num_records = std::max(num_records, piece.start[0] + piece.count[0]);
    const Item item{&layout, piece, data};
    auto written = client_.write(token_, num_records, order_, {&item, 1});
    ASSERT_TRUE(written.ok()) << written.error().message;
    ASSERT_EQ(*written, NC_NOERR);
    order_.know(order_.end_call());
    ASSERT_EQ(IoThread::get().run([&] { return twin_->write(piece, data.data()); }), NC_NOERR);
  }

  void expect_same(const VariableLayout &layout, Piece piece) {
    piece.varid = layout.varid;
    auto mine = random_data(layout, piece, random_), theirs = mine;
    const Item item{&layout, piece, mine};
    auto got = client_.read(token_, num_records, order_, {&item, 1});
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_EQ(*got, NC_NOERR);
    const Variable variable{layout, "", 0};
    ASSERT_EQ(IoThread::get().run([&] { return twin_->read(variable, piece, num_records, theirs.data()); }), NC_NOERR);
    ASSERT_EQ(mine, theirs);
  }

  void close(bool durable) {
    auto closed = client_.close(token_, num_records, durable ? Closing::kDurable : Closing::kEarly, order_);
    ASSERT_TRUE(closed.ok()) << closed.error().message;
    ASSERT_EQ(*closed, NC_NOERR);
    close_twin();
  }
  void close_twin() {
    ASSERT_EQ(IoThread::get().run([&] { return twin_->close(num_records); }), NC_NOERR);
  }
  void expect_same_files() {
    const auto mine = contents(staged_), theirs = contents(native_);
    ASSERT_EQ(mine.size(), theirs.size());
    const auto [differs, same] = std::mismatch(mine.begin(), mine.end(), theirs.begin());
    ASSERT_TRUE(differs == mine.end()) << "the files differ at offset " << differs - mine.begin();
  }

  const std::string &path() const { return staged_; }
  FileToken token() const { return token_; }
  std::int64_t num_records = 0;

 private:
  Client &client_;
  const std::string staged_, native_;
  const FileToken token_ = nessie::random_u64();
  std::unique_ptr<NativeFile> twin_;
  Order order_{client_.servers()};
  std::mt19937 random_{42};
};

class StagingTest : public ::testing::TestWithParam<std::tuple<int, Mode, std::uint64_t>> {
 protected:
  void SetUp() override {
    const auto [servers, mode, memory] = GetParam();
    service_ = std::make_unique<Service>(servers, mode, memory);
    client_ = service_->client();
    ASSERT_NE(client_, nullptr);
  }

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  Piece any_piece(const VariableLayout &layout, std::int64_t records) {
    Piece piece;
    const bool strided = pick(0, 3) == 0;
    for (std::size_t d = 0; d < layout.shape.size(); ++d) {
      const auto size = layout.is_record && d == 0 ? records : layout.shape[d];
      const auto stride = strided ? pick(1, 3) : 1, start = pick(0, size - 1);
      piece.start.push_back(start);
      piece.count.push_back(pick(1, (size - start + stride - 1) / stride));
      if (strided) piece.stride.push_back(stride);
    }
    return piece;
  }

  static Piece all(const VariableLayout &layout, std::int64_t records) {
    Piece piece;
    piece.start.assign(layout.shape.size(), 0);
    piece.count = layout.shape;
    if (layout.is_record) piece.count[0] = records;
    return piece;
  }

  std::unique_ptr<Service> service_;
  std::unique_ptr<Client> client_;
  std::mt19937 random_{2011};
};

TEST_P(StagingTest, FilesAreTheSameByteForByte) {
  for (int cmode : {0, NC_64BIT_OFFSET, NC_64BIT_DATA}) {
    Twins file(*service_, *client_, "same" + std::to_string(cmode));
    file.create(NC_CLOBBER | cmode);
    file.enddef(Schema::definitions());
    file.put(Schema::box(), all(Schema::box(), 0));
    file.put(Schema::history(), all(Schema::history(), 3));
    for (int i = 0; i < 12; ++i) {
      file.put(Schema::box(), any_piece(Schema::box(), 0));
      file.put(Schema::scalar(), {});
      file.put(Schema::history(), any_piece(Schema::history(), 3));
    }
    file.close(true);
    file.expect_same_files();
  }
}

std::vector<Definition> many_attributes(int count) {
  std::vector<Definition> definitions;
  for (int i = 0; i < count; ++i) {
    Definition attribute;
    attribute.kind = DefinitionKind::kPutAtt;
    attribute.varid = NC_GLOBAL;
    attribute.type = NC_CHAR;
    attribute.name = "attribute_" + std::to_string(i);
    attribute.length = 5;
    attribute.value = Bytes(5, std::byte{'x'});
    definitions.push_back(std::move(attribute));
  }
  return definitions;
}

TEST_P(StagingTest, DefinitionsThatAreSentAhead_AreCarriedOutInTheirOrder) {
  Twins file(*service_, *client_, "ahead");
  file.create();
  file.send_ahead(Schema::definitions());
  for (int batch = 0; batch < 3; ++batch) file.send_ahead(many_attributes(300 * (batch + 1)));
  file.enddef(many_attributes(2));
  file.put(Schema::box(), all(Schema::box(), 0));
  file.close(true);
  file.expect_same_files();
}

TEST_P(StagingTest, ADefinitionThatWasSentAhead_AndIsRefused_IsToldByEnddef) {
  const auto path = service_->file("refused.nc");
  ASSERT_EQ(*client_->create({5, path, NC_CLOBBER, {}}, program_file(path).get()), NC_NOERR);
  auto definitions = many_attributes(1);
  definitions[0].name = "";
  ASSERT_TRUE(client_->define({5, definitions}));
  EndDefArgs args;
  args.file = 5;
  EXPECT_EQ(client_->enddef(args, true)->nc_error, NC_EBADNAME);
  EXPECT_EQ(*client_->abort(5), NC_NOERR);
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

TEST_P(StagingTest, AFileThatIsAborted_ForgetsWhatWasSentAhead) {
  const auto path = service_->file("forgotten.nc");
  ASSERT_EQ(*client_->create({5, path, NC_CLOBBER, {}}, program_file(path).get()), NC_NOERR);
  ASSERT_TRUE(client_->define({5, many_attributes(1000)}));
  EXPECT_EQ(*client_->abort(5), NC_NOERR);
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

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

TEST_P(StagingTest, ARunFromTheMiddleOfOneRecordToTheMiddleOfAnotherIsWritten) {
  auto definitions = Schema::definitions();
  Definition more;
  more.kind = DefinitionKind::kDefVar, more.name = "short_records", more.type = NC_FLOAT, more.dims = {0, 1};
  definitions.push_back(more);
  const VariableLayout layout{3, 4, true, {0, Schema::kZ}};
  Twins file(*service_, *client_, "run");
  file.create();
  file.enddef(definitions);
  file.put(Schema::history(), all(Schema::history(), 4));
  file.put(layout, all(layout, 4));
  ASSERT_TRUE(client_->sync(file.token(), file.num_records).ok());
  file.put(layout, {0, {0, 9}, {1, Schema::kZ - 9}, {}});
  file.put(layout, {0, {1, 0}, {2, Schema::kZ}, {}});
  file.put(layout, {0, {3, 0}, {1, 9}, {}});
  file.close(true);
  file.expect_same_files();
}

TEST_P(StagingTest, RecordsOfOneElementCanBeStrided) {
  auto definitions = Schema::definitions();
  Definition more;
  more.kind = DefinitionKind::kDefVar, more.name = "list", more.type = NC_INT, more.dims = {0};
  definitions.push_back(more);
  const VariableLayout layout{3, 4, true, {0}};
  Twins file(*service_, *client_, "strided");
  file.create();
  file.enddef(definitions);
  file.put(Schema::history(), all(Schema::history(), 6));
  file.put(layout, all(layout, 6));
  file.put(layout, {0, {1}, {3}, {2}});
  ASSERT_TRUE(client_->sync(file.token(), file.num_records).ok());
  file.expect_same(layout, {0, {0}, {3}, {2}});
  file.expect_same(Schema::history(), all(Schema::history(), 6));
  file.close(true);
  file.expect_same_files();
}

TEST_P(StagingTest, DefinitionsCanBeAddedLater) {
  Twins file(*service_, *client_, "redef");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.put(Schema::history(), all(Schema::history(), 2));
  Definition more;
  more.kind = DefinitionKind::kDefVar, more.name = "late", more.type = NC_FLOAT, more.dims = {1, 2, 3};
  file.enddef({more}, false);
  const VariableLayout late{3, 4, false, {Schema::kZ, Schema::kY, Schema::kX}};
  file.put(late, all(late, 0));
  file.put(Schema::history(), any_piece(Schema::history(), 3));
  file.put(Schema::history(), all(Schema::history(), 3));
  file.close(true);
  file.expect_same_files();
}

TEST_P(StagingTest, SyncPutsEverythingIntoTheFile) {
  Twins file(*service_, *client_, "sync");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.put(Schema::scalar(), {});
  file.put(Schema::history(), all(Schema::history(), 2));
  auto synced = client_->sync(file.token(), file.num_records);
  ASSERT_TRUE(synced.ok() && *synced == NC_NOERR);
  file.close_twin();
  file.expect_same_files();
  auto closed = client_->close(file.token(), file.num_records, Closing::kDurable, Order(client_->servers()));
  ASSERT_TRUE(closed.ok() && *closed == NC_NOERR);
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

TEST_P(StagingTest, AFileThatIsEmptiedWhileItIsOpenIsNoError) {
  Twins file(*service_, *client_, "emptied");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::history(), all(Schema::history(), 2));
  for (int i = 0; i < 2; ++i) {
    auto synced = client_->sync(file.token(), file.num_records);
    ASSERT_TRUE(synced.ok() && *synced == NC_NOERR);
    std::filesystem::resize_file(file.path(), 0);
  }
  file.close(true);
}

TEST_P(StagingTest, AFileWithoutItsProgramIsDrainedAndClosed) {
  Twins file(*service_, *client_, "orphan");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.put(Schema::scalar(), {});
  file.close_twin();
  client_.reset();
  auto other = service_->client();
  ASSERT_TRUE(other->settle({{}, file.path()}).ok());
  service_->stop();
  file.expect_same_files();
}

TEST_P(StagingTest, ASecondFileWaitsForTheFirstOfItsName) {
  for (int i = 0; i < 3; ++i) {
    Twins file(*service_, *client_, "again");
    file.create();
    file.enddef(Schema::definitions());
    file.put(Schema::box(), all(Schema::box(), 0));
    file.put(Schema::scalar(), {});
    file.close(false);
    ASSERT_TRUE(client_->settle({{}, file.path()}).ok());
    file.expect_same_files();
  }
}

TEST_P(StagingTest, AFileThatIsNoneAnswersWithNativesCode) {
  const auto path = service_->file("text");
  std::ofstream(path) << "neither CDF nor HDF5";
  const auto native =
      IoThread::get().run([&] { return NativeFile::open(program_file(path, O_RDONLY), NC_NOWRITE, {}).nc_error; });
  EXPECT_NE(native, NC_NOERR);
  EXPECT_EQ(client_->open({2, path, NC_NOWRITE, {}}, program_file(path, O_RDONLY).get())->nc_error, native);
  EXPECT_EQ(*client_->close(3, -1, Closing::kDurable, Order(client_->servers())), NC_EBADID);
  EXPECT_EQ(*client_->sync(3, -1), NC_EBADID);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_P(StagingTest, AFileThatIsNotOpenedStaysWithNoServer) {
  const auto path = service_->file("text");
  std::ofstream(path) << "neither CDF nor HDF5";
  const auto before = open_descriptors();
  for (FileToken token = 20; token < 40; ++token)
    EXPECT_NE(client_->open({token, path, NC_NOWRITE, {}}, program_file(path, O_RDONLY).get())->nc_error, NC_NOERR);
  EXPECT_LE(open_descriptors(), before);
}

TEST_P(StagingTest, WhatTheProgramCannotWriteIsNotWrittenForIt) {
  const auto path = service_->file("read-only.nc");
  std::ofstream(path) << "precious";
  EXPECT_EQ(client_->create({4, path, NC_CLOBBER, {}}, program_file(path, O_RDONLY).get()).code(),
            nessie::Code::kInvalidArgument);
  EXPECT_EQ(client_->create({4, path, NC_CLOBBER, {}}, program_file("/dev/null", O_RDWR).get()).code(),
            nessie::Code::kInvalidArgument);
  EXPECT_EQ(contents(path), "precious");
}

TEST_P(StagingTest, ANameThatLeadsElsewhere_DoesNotMatter) {
  const auto staged = service_->file("staged.nc"), other = service_->file("other.nc");
  std::ofstream(other) << "precious";
  ASSERT_EQ(*client_->create({5, other, NC_CLOBBER, {}}, program_file(staged).get()), NC_NOERR);
  EXPECT_EQ(*client_->close(5, -1, Closing::kDurable, Order(client_->servers())), NC_NOERR);
  EXPECT_EQ(contents(other), "precious");
}

TEST_P(StagingTest, PiecesOutsideTheirVariableAreRefused) {
  Twins file(*service_, *client_, "refused");
  file.create();
  file.enddef(Schema::definitions());
  std::vector<std::byte> data(4096);
  Order order(client_->servers());
  const auto layout = Schema::box();
  const Item outside{&layout, Piece{0, {0, 0, 0}, {1, 1, Schema::kX + 1}, {}}, {data.data(), (Schema::kX + 1) * 4}};
  EXPECT_EQ(client_->write(file.token(), 0, order, {&outside, 1}).code(), nessie::Code::kInvalidArgument);
  const Item short_of{&layout, Piece{0, {0, 0, 0}, {1, 1, 8}, {}}, {data.data(), 4}};
  EXPECT_EQ(client_->write(file.token(), 0, order, {&short_of, 1}).code(), nessie::Code::kInvalidArgument);
  const Item strange{&layout, Piece{17, {0, 0, 0}, {1, 1, 8}, {}}, {data.data(), 32}};
  EXPECT_FALSE(client_->read(file.token(), 0, order, {&strange, 1}).ok());
  file.close(true);
}

TEST_P(StagingTest, ManySmallPiecesTakeFewMessages) {
  Twins file(*service_, *client_, "small");
  file.create();
  file.enddef(Schema::definitions());
  const auto layout = Schema::box();
  std::vector<std::int32_t> values(Schema::kZ * Schema::kY * Schema::kX);
  for (auto &value : values) value = static_cast<std::int32_t>(random_());
  Order order(client_->servers());
  std::vector<Item> items;
  for (std::int64_t row = 0; row < Schema::kZ * Schema::kY; ++row)
    items.push_back(
        {&layout, Piece{0, {row / Schema::kY, row % Schema::kY, 0}, {1, 1, Schema::kX}, {}},
         std::as_writable_bytes(std::span(values).subspan(static_cast<std::size_t>(row * Schema::kX), Schema::kX))});
  ASSERT_EQ(*client_->write(file.token(), 0, order, items), NC_NOERR);
  const auto written = values;
  std::fill(values.begin(), values.end(), 0);
  ASSERT_EQ(*client_->read(file.token(), 0, order, items), NC_NOERR);
  EXPECT_EQ(values, written);
  std::uint64_t messages = 0;
  for (int s = 0; s < client_->servers(); ++s) messages += client_->report(s)->writes;
  EXPECT_LE(messages, 40u);
  file.close(true);
}

TEST_P(StagingTest, TheReportAccountsForEveryByte) {
  Twins file(*service_, *client_, "accounts");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.close(true);
  const std::uint64_t bytes = Schema::kZ * Schema::kY * Schema::kX * 4;
  std::uint64_t pulled = 0, drained = 0, acknowledged = 0, in_file = 0;
  for (int s = 0; s < client_->servers(); ++s) {
    const auto report = *client_->report(s);
    EXPECT_EQ(report.bytes_pending, 0u);
    EXPECT_TRUE(report.failures.empty());
    pulled += report.bytes_pulled, drained += report.bytes_drained;
    for (const auto &f : report.drained) acknowledged += f.bytes_acknowledged, in_file += f.bytes_in_file;
  }
  EXPECT_EQ(pulled, bytes);
  EXPECT_EQ(drained, bytes);
  EXPECT_EQ(acknowledged, bytes);
  EXPECT_EQ(in_file, bytes);
}

TEST_P(StagingTest, AbortOfANewFileLeavesItEmpty) {
  const auto path = service_->file("aborted.nc");
  ASSERT_EQ(*client_->create({5, path, NC_CLOBBER, {}}, program_file(path).get()), NC_NOERR);
  EXPECT_EQ(*client_->abort(5), NC_NOERR);
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

TEST_P(StagingTest, AFileThatWasNeverDefinedStaysEmptyWhenItsProgramDies) {
  const auto path = service_->file("undefined.nc");
  ASSERT_EQ(*client_->create({5, path, NC_CLOBBER, {}}, program_file(path).get()), NC_NOERR);
  client_.reset();
  service_->stop();
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

/// One value of the scalar, written or read through a handle.
class ScalarHandle {
 public:
  ScalarHandle(Client &client, FileToken token) : client_(client), token_(token) {}
  void put(std::int16_t value) { ASSERT_EQ(*client_.write(token_, 0, order_, {{item(value)}}), NC_NOERR); }
  std::int16_t get() {
    std::int16_t value = -1;
    EXPECT_EQ(*client_.read(token_, 0, order_, {{item(value)}}), NC_NOERR);
    return value;
  }
  void close() { EXPECT_EQ(*client_.close(token_, -1, Closing::kEarly, order_), NC_NOERR); }

 private:
  Item item(std::int16_t &value) {
    return {&layout_, Piece{1, {}, {}, {}}, std::as_writable_bytes(std::span(&value, 1))};
  }
  const VariableLayout layout_ = Schema::scalar();
  Client &client_;
  const FileToken token_;
  Order order_{client_.servers()};
};

TEST_P(StagingTest, HandlesOnOneFile_EachSeeWhatTheOtherWrote_AndTheLastWordStays) {
  Twins file(*service_, *client_, "handles");
  file.create();
  file.enddef(Schema::definitions());
  const auto link = service_->file("another-name.nc");
  std::filesystem::create_hard_link(file.path(), link);
  ScalarHandle first(*client_, file.token());
  first.put(1);
  const auto other = service_->client();
  ASSERT_TRUE(other->settle({identity_of(link), link}).ok());
  ASSERT_EQ(other->open({7, link, NC_WRITE, {}}, program_file(link, O_RDWR).get())->nc_error, NC_NOERR);
  ScalarHandle second(*other, 7);
  EXPECT_EQ(second.get(), 1);
  for (std::int16_t value = 2; value < 20; value += 2) {
    first.put(value);
    EXPECT_EQ(second.get(), value);
    second.put(static_cast<std::int16_t>(value + 1));
    EXPECT_EQ(first.get(), value + 1);
  }
  first.put(100);
  second.put(101);
  second.close();
  first.close();
  ASSERT_TRUE(client_->settle({identity_of(link), link}).ok());
  ASSERT_EQ(other->open({8, link, NC_NOWRITE, {}}, program_file(link, O_RDONLY).get())->nc_error, NC_NOERR);
  EXPECT_EQ(ScalarHandle(*other, 8).get(), 101);
  file.close_twin();
}

TEST_P(StagingTest, WhatIsPutThroughTwoHandlesInTurnStays_AsItWasPut) {
  Twins file(*service_, *client_, "in-turn");
  file.create();
  file.enddef(Schema::definitions());
  ASSERT_EQ(client_->open({9, file.path(), NC_WRITE, {}}, program_file(file.path(), O_RDWR).get())->nc_error, NC_NOERR);
  ScalarHandle first(*client_, file.token()), second(*client_, 9);
  for (std::int16_t value = 0; value < 2000; value += 2) {
    first.put(value);
    second.put(static_cast<std::int16_t>(value + 1));
    if (value % 200 == 0) { EXPECT_EQ(first.get(), value + 1); }
  }
  EXPECT_EQ(first.get(), 1999);
  first.close();
  second.close();
  file.close_twin();
}

TEST_P(StagingTest, ShutdownDrainsFirst) {
  Twins file(*service_, *client_, "shutdown");
  file.create();
  file.enddef(Schema::definitions());
  file.put(Schema::box(), all(Schema::box(), 0));
  file.put(Schema::scalar(), {});
  file.close(false);
  for (int s = 0; s < client_->servers(); ++s) {
    auto report = client_->shutdown(s, nessie::Deadline::in(std::chrono::seconds(30)));
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->bytes_pending, 0u);
  }
  file.expect_same_files();
}

TEST(Staging, AReportNamesSoManyNativeFiles_AndCountsTheOthers) {
  Service service(1, Mode::kCaching, 1 << 20);
  const auto client = service.client();
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 4096 + 3; ++i) ASSERT_TRUE(client->note_native("out.nc", "because").ok());
  const auto native = client->report(0)->native;
  ASSERT_EQ(native.size(), 4096u + 1);
  EXPECT_EQ(native.front(), "out.nc: because");
  EXPECT_EQ(native.back(), "3 more files, says server 0");
}

bool is_open_as(const nessie::Fd &file, const std::string &path, int access) {
  return identity_of(file.get()) == identity_of(path) && (::fcntl(file.get(), F_GETFL) & O_ACCMODE) == access;
}

TEST_P(StagingTest, AFileThatIsOpenIsLent_WithTheAccessOfItsHandle) {
  Twins file(*service_, *client_, "lent");
  file.create();
  file.enddef(Schema::definitions());
  const auto identity = identity_of(file.path());
  const auto other_rank = service_->client();
  for (auto *client : {client_.get(), other_rank.get()}) {
    auto lent = client->lend(file.token(), identity);
    ASSERT_TRUE(lent.ok()) << lent.error().message;
    EXPECT_TRUE(is_open_as(*lent, file.path(), O_RDWR));
  }
  file.close(true);
  EXPECT_EQ(client_->lend(file.token(), identity).code(), nessie::Code::kNotFound) << "it is closed";
  const OpenArgs to_read{5, file.path(), NC_NOWRITE, {}};
  ASSERT_EQ(client_->open(to_read, program_file(file.path(), O_RDONLY).get())->nc_error, NC_NOERR);
  auto lent = other_rank->lend(5, identity);
  ASSERT_TRUE(lent.ok()) << lent.error().message;
  EXPECT_TRUE(is_open_as(*lent, file.path(), O_RDONLY));
  ASSERT_TRUE(client_->close(5, 0, Closing::kEarly, Order(client_->servers())).ok());
}

TEST_P(StagingTest, WhoMayOnlyReadIsNotLentWhatCanBeWrittenTo) {
  Twins file(*service_, *client_, "read");
  file.create();
  file.enddef(Schema::definitions());
  file.close(true);
  const OpenArgs to_read{5, file.path(), NC_NOWRITE, {}};
  ASSERT_EQ(client_->open(to_read, program_file(file.path(), O_RDWR).get())->nc_error, NC_NOERR);
  EXPECT_EQ(client_->lend(5, identity_of(file.path())).code(), nessie::Code::kRefused);
  ASSERT_TRUE(client_->close(5, 0, Closing::kEarly, Order(client_->servers())).ok());
}

/// Comes to a server's door for a file, as the library in front of programs does.
nessie::Fd knock(const std::string &board_path, const FileIdentity &file) {
  const auto bytes = contents(board_path);
  const std::string_view door(bytes.data() + offsetof(nessie_board, door));
  nessie::Fd visitor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  door.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + door.size());
  EXPECT_EQ(::connect(visitor.get(), reinterpret_cast<const sockaddr *>(&address), size), 0);
  const nessie_board_place place{file.device, file.inode};
  EXPECT_EQ(::send(visitor.get(), &place, sizeof place, 0), static_cast<ssize_t>(sizeof place));
  return visitor;
}

bool is_answered(const nessie::Fd &visitor, int timeout_ms) {
  pollfd answer{visitor.get(), POLLIN, 0};
  char word = 0;
  return ::poll(&answer, 1, timeout_ms) == 1 && ::recv(visitor.get(), &word, 1, 0) == 1 && word == '+';
}

TEST(Staging, WhoComesToTheDoorInTheMiddleOfEnddef_IsLetInWhenThatIsOver) {
  Service service(1, Mode::kCaching, 8 << 20, "inproc", std::chrono::seconds(30), true);
  const auto client = service.client();
  ASSERT_NE(client, nullptr);
  const auto path = service.file("redef.nc");
  ASSERT_EQ(*client->create({9, path, NC_CLOBBER, {}}, program_file(path).get()), NC_NOERR);
  EndDefArgs definitions;
  definitions.file = 9;
  definitions.definitions = Schema::definitions();
  ASSERT_EQ(client->enddef(definitions, true)->nc_error, NC_NOERR);
  std::promise<void> busy, go_on;
  IoThread::get().queue().submit(Worker::Lane::kRequest, [&, go = go_on.get_future().share()] {
    busy.set_value();
    go.wait();
  });
  busy.get_future().wait();
  std::thread definer([&] {
    definitions.definitions = {Schema::definitions().back()};
    definitions.definitions[0].name = "later";
    EXPECT_EQ(client->enddef(definitions, false)->nc_error, NC_NOERR);
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!IoThread::get().queue().waits(Worker::Lane::kRequest) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  const auto visitor = knock(service.board(0), identity_of(path));
  EXPECT_FALSE(is_answered(visitor, 100));
  go_on.set_value();
  EXPECT_TRUE(is_answered(visitor, 60'000));
  EXPECT_NE(contents(path).find("later"), std::string::npos);
  definer.join();
  EXPECT_EQ(*client->close(9, 0, Closing::kDurable, Order(1)), NC_NOERR);
}

INSTANTIATE_TEST_SUITE_P(Servers, StagingTest,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::Values(Mode::kCaching, Mode::kDirect),
                                            ::testing::Values(std::uint64_t{64} << 20, std::uint64_t{64} << 10)),
                         [](const auto &info) {
                           return std::string(std::get<1>(info.param) == Mode::kCaching ? "Caching" : "Direct") +
                                  (std::get<2>(info.param) > (1 << 20) ? "Large" : "Small") +
                                  std::to_string(std::get<0>(info.param));
                         });

}  // namespace
}  // namespace staging
