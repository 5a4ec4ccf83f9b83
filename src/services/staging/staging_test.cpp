// SPDX-License-Identifier: BSD-3-Clause
// The service from end to end: what is about several operations.
#include <services/staging/twins_testing.hpp>

namespace staging {
namespace {

using testing::program_file;
using testing::Schema;
using testing::StagingTest;
using testing::Twins;

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
