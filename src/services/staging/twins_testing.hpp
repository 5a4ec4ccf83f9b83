// SPDX-License-Identifier: BSD-3-Clause
// For tests of the service from end to end: client, servers and native files, in one process; each file is compared
// with one that native PnetCDF has made with the same calls.
#pragma once

#include <services/staging/testing.hpp>

#include <algorithm>
#include <tuple>

namespace staging::testing {

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
  /// For the I/O thread.
  NativeFile &twin() { return *twin_; }
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

}  // namespace staging::testing
