// SPDX-License-Identifier: BSD-3-Clause
// Files that programs write through staging servers, as streams.
#include <services/staging/testing.hpp>
#include <services/streams/server/files.hpp>
#include <services/streams/testing.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace streams {
namespace {

using staging::ClassicHeader;
using staging::FileStage;
using staging::Mark;
using staging::WatchedFile;
using testing::soon;
namespace api = nessie::streams;

// --- what steps become of marks ---------------------------------------------------------------------------------------

/// A fixed variable, and one of records, if there are.
ClassicHeader header_of(bool has_records) {
  ClassicHeader header;
  auto &fixed = header.variables.emplace_back();
  fixed.name = "fixed", fixed.type = 6, fixed.element_bytes = 8, fixed.shape = {4};
  fixed.dimensions = {"x"};
  header.attributes = {{"title", 2, {std::byte{'t'}}}};
  if (!has_records) return header;
  auto &history = header.variables.emplace_back();
  history.varid = 1, history.is_record = true;
  history.name = "history", history.type = 5, history.element_bytes = 4, history.shape = {0, 3};
  history.dimensions = {"time", "y"};
  history.attributes = {{"_FillValue", 5, {4, std::byte{1}}}};
  return header;
}

WatchedFile file_of(const std::string &path, std::vector<Mark> marks, FileStage stage = FileStage::kOpen,
                    staging::FileToken token = 1) {
  WatchedFile file;
  file.file = token, file.path = path, file.stage = stage, file.headers = 1, file.marks = std::move(marks);
  return file;
}
WatchedFile created(WatchedFile file, std::int64_t created_ns) {
  file.created_ns = created_ns;
  return file;
}

Mark mark_of(std::int64_t records, bool is_all, std::vector<int> variables = {}) {
  return {1, 1, 0, records, is_all, std::move(variables), {{0, 0}}};
}

std::string text_of(const AttributeArgs &attribute) {
  const std::string value(reinterpret_cast<const char *>(attribute.value.data()), attribute.value.size());
  return fmt::format("{} of {}: {}", attribute.name, attribute.variable, value);
}

TEST(FileSteps, FilesHaveTheirPathsAsNames_BelowTheFolderOfTheRunWithoutIt) {
  const FileSteps all("*", "/run");
  EXPECT_EQ(all.name_of("/run/a/b.nc")->stream, "a/b.nc");
  EXPECT_EQ(all.name_of("/other/b.nc")->stream, "/other/b.nc");
  EXPECT_EQ(all.name_of("/running/b.nc")->stream, "/running/b.nc");
  const FileSteps some("*.nc", "/run");
  EXPECT_TRUE(some.name_of("/run/a/b.nc"));
  EXPECT_FALSE(some.name_of("/run/a/b.h5"));
  const FileSteps of_folder("a/*.nc", "/run");
  EXPECT_TRUE(of_folder.name_of("/run/a/b.nc"));
  EXPECT_FALSE(of_folder.name_of("/run/b/b.nc"));
}

TEST(FileSteps, FilesAreNumberedWhereDigitsStandForTheStar) {
  const FileSteps steps("ckpt.*.nc", "/run");
  EXPECT_EQ(steps.name_of("/run/ckpt.0001.nc")->stream, "ckpt.*.nc");
  EXPECT_TRUE(steps.name_of("/run/ckpt.0001.nc")->is_numbered);
  EXPECT_EQ(steps.name_of("/run/ckpt.last.nc")->stream, "ckpt.last.nc");
  EXPECT_FALSE(FileSteps("*.nc", "/run").name_of("/run/ckpt.0001.nc")->is_numbered);
}

TEST(FileSteps, EachRecordIsAStep_AndFixedVariablesAreConstantsOfTheOneInWhichTheyAreComplete) {
  FileSteps steps("*.nc", "/run");
  const auto header = header_of(true);
  const auto first = steps.take(file_of("/run/a.nc", {mark_of(1, false)}), header);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].source.record, 0);
  ASSERT_EQ(first[0].variables->size(), 1U);
  EXPECT_EQ(first[0].variables->at(0).name, "history");
  EXPECT_EQ(first[0].variables->at(0).shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(first[0].variables->at(0).fill.size(), 4U);
  ASSERT_EQ(first[0].attributes.size(), 4U);
  EXPECT_EQ(text_of(first[0].attributes[1]), "dimensions of fixed: x");
  EXPECT_EQ(text_of(first[0].attributes[3]), "dimensions of history: y");
  EXPECT_EQ(first[0].source.kind, SourceKind::kOfRecord);
  const auto more = steps.take(file_of("/run/a.nc", {mark_of(3, false, {0})}), header);
  ASSERT_EQ(more.size(), 2U);
  EXPECT_EQ(more[1].source.record, 2);
  ASSERT_EQ(more[0].variables->size(), 2U);
  EXPECT_TRUE(more[0].variables->at(1).is_constant);
  EXPECT_EQ(more[1].variables->size(), 1U);
  EXPECT_TRUE(more[0].attributes.empty());
  EXPECT_TRUE(steps.take(file_of("/run/a.nc", {mark_of(3, true)}), header).empty());
}

TEST(FileSteps, AFixedVariableThatIsPutOnceMoreIsAConstantOnceMore) {
  FileSteps steps("*.nc", "/run");
  const auto header = header_of(true);
  EXPECT_EQ(steps.take(file_of("/run/a.nc", {mark_of(2, false, {0})}), header).size(), 2U);
  const auto again = steps.take(file_of("/run/a.nc", {mark_of(2, true, {0})}), header);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].source.record, FileSource::kWholeFile);
  ASSERT_EQ(again[0].variables->size(), 1U);
  EXPECT_EQ(again[0].variables->at(0).name, "fixed");
}

TEST(FileSteps, AFileThatIsOpenedOnceMoreGoesOn_AndOneThatHasFewerRecordsThenBeginsAnew) {
  FileSteps steps("*.nc", "/run");
  const auto header = header_of(true);
  EXPECT_EQ(steps.take(file_of("/run/a.nc", {mark_of(3, true)}), header).size(), 3U);
  const auto again = file_of("/run/a.nc", {mark_of(4, false)}, FileStage::kClosed, 2);
  EXPECT_FALSE(steps.begins_anew(again, &header));
  EXPECT_EQ(steps.take(again, header).size(), 1U);
  const auto fewer = file_of("/run/a.nc", {mark_of(2, false)}, FileStage::kOpen, 3);
  EXPECT_TRUE(steps.begins_anew(fewer, &header));
  EXPECT_EQ(steps.take(fewer, header).size(), 2U);
  EXPECT_FALSE(steps.begins_anew(fewer, &header));
}

TEST(FileSteps, AFileThatIsMadeAnewIsAnother_HoweverManyRecordsItHas) {
  FileSteps steps("*.nc", "/run");
  const auto header = header_of(true);
  const auto first = created(file_of("/run/a.nc", {mark_of(2, true)}, FileStage::kClosed, 1), 10);
  EXPECT_FALSE(steps.begins_anew(first, &header));
  EXPECT_EQ(steps.take(first, header).size(), 2U);
  const auto second = created(file_of("/run/a.nc", {}, FileStage::kOpen, 2), 20);
  EXPECT_TRUE(steps.begins_anew(second, nullptr));
  EXPECT_FALSE(steps.begins_anew(first, &header));  // said of the one before
  EXPECT_TRUE(steps.take(first, header).empty());
  const auto written = created(file_of("/run/a.nc", {mark_of(5, true)}, FileStage::kOpen, 2), 20);
  EXPECT_FALSE(steps.begins_anew(written, &header));
  const auto made = steps.take(written, header);
  ASSERT_EQ(made.size(), 5U);
  EXPECT_EQ(made[0].source.record, 0);
  EXPECT_EQ(made[0].variables->size(), 2U);  // the fixed one, too, is new
}

TEST(FileSteps, AFileThatAnotherOneWasPutInPlaceOfIsAnother) {
  FileSteps steps("*.nc", "/run");
  const auto header = header_of(true);
  EXPECT_EQ(steps.take(created(file_of("/run/a.nc", {mark_of(2, true)}), 10), header).size(), 2U);
  auto put = file_of("/run/a.nc", {mark_of(3, true)}, FileStage::kOpen, 2);
  put.identity = {1, 7};
  EXPECT_TRUE(steps.begins_anew(put, &header));
  EXPECT_EQ(steps.take(put, header).size(), 3U);
}

TEST(FileSteps, AFileWithoutRecordsThatIsMadeAnewIsTheNextStep) {
  FileSteps steps("*.nc", "/run");
  const auto header = header_of(false);
  for (staging::FileToken token = 1; token <= 3; ++token) {
    const auto file = created(file_of("/run/a.nc", {mark_of(0, true)}, FileStage::kClosed, token), 10 * token);
    EXPECT_FALSE(steps.begins_anew(file, &header));
    EXPECT_EQ(steps.take(file, header).size(), 1U);
  }
  const auto with_records = created(file_of("/run/a.nc", {mark_of(1, true)}, FileStage::kOpen, 4), 40);
  EXPECT_FALSE(steps.begins_anew(created(file_of("/run/a.nc", {}, FileStage::kOpen, 4), 40), nullptr));
  const auto header_with_records = header_of(true);
  EXPECT_TRUE(steps.begins_anew(with_records, &header_with_records));
}

TEST(FileSteps, AFileWithoutRecordsIsAStepEachTimeThatItIsAllComplete) {
  FileSteps steps("*.nc", "/run");
  const auto header = header_of(false);
  EXPECT_TRUE(steps.take(file_of("/run/a.nc", {mark_of(0, false, {0})}), header).empty());
  const auto some = steps.take(file_of("/run/a.nc", {mark_of(0, true), mark_of(0, true)}), header);
  ASSERT_EQ(some.size(), 2U);
  EXPECT_FALSE(some[1].variables->at(0).is_constant);
  EXPECT_EQ(some[1].source.record, FileSource::kWholeFile);
}

TEST(FileSteps, ANumberedFileIsAStepWhenItIsClosed) {
  FileSteps steps("c.*.nc", "/run");
  const auto header = header_of(true);
  EXPECT_TRUE(steps.take(file_of("/run/c.1.nc", {mark_of(2, true)}), header).empty());
  const auto one = steps.take(file_of("/run/c.1.nc", {}, FileStage::kClosing), header);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].stream, "c.*.nc");
  EXPECT_EQ(one[0].variables->at(1).shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_TRUE(steps.take(file_of("/run/c.1.nc", {}, FileStage::kClosed), header).empty());
}

// --- from the program to the reader -----------------------------------------------------------------------------------

class FileStreams : public ::testing::Test {
 protected:
  using Schema = staging::testing::Schema;
  void SetUp() override {
    client_ = service_.client();
    ServerOptions options;
    options.files = "*.nc";
    options.files_folder = service_.file("").substr(0, service_.file("").size() - 1);
    options.staging.set("servers", service_.urls());
    server_.emplace(options);
  }

  void create(const std::string &name, staging::FileToken token) {
    staging::testing::create_file(*client_, token, service_.file(name), Schema::definitions());
    order_ = staging::Order(1);
  }
  std::vector<std::byte> put(staging::FileToken token, const staging::VariableLayout &layout,
                             const staging::Piece &piece) {
    auto data = staging::testing::random_data(layout, piece, random_);
    const staging::Item item{&layout, piece, data};
    const auto written = client_->write(token, piece.varid == 2 ? piece.start[0] + 1 : 0, order_, {&item, 1});
    EXPECT_TRUE(written.ok() && *written == NC_NOERR);
    order_.know(order_.end_call());
    return data;
  }
  std::vector<std::byte> put_record(staging::FileToken token, std::int64_t record) {
    return put(token, Schema::history(), {2, {record, 0, 0}, {1, Schema::kRecordY, Schema::kRecordX}, {}});
  }
  void mark(staging::FileToken token, std::int64_t records, bool is_all = false, std::vector<int> variables = {}) {
    client_->mark(token, {0, 0, 0, records, is_all, std::move(variables), {}}, order_);
  }
  void close(staging::FileToken token, std::int64_t records) {
    EXPECT_EQ(*client_->close(token, records, staging::Closing::kDurable, order_), NC_NOERR);
  }
  Result<api::Reader> open_reader(const std::string &name) {
    api::ReaderOptions options;
    options.at = server_->at();
    return api::Reader::open(name, options, soon());
  }
  static void expect_got(api::Reader &reader, const char *variable, const api::Box &box,
                         const std::vector<std::byte> &expected) {
    std::vector<std::byte> data(expected.size());
    const auto status = reader.get(variable, box, data.data(), data.size(), soon());
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(data, expected);
  }
  static api::Box a_record() { return {{0, 0}, {Schema::kRecordY, Schema::kRecordX}}; }
  static api::Box a_box() { return {{0, 0, 0}, {Schema::kZ, Schema::kY, Schema::kX}}; }

  staging::testing::Service service_{1, staging::Mode::kCaching, 64 << 20};
  std::unique_ptr<staging::Client> client_;
  std::optional<testing::ServerThread> server_;
  staging::Order order_{1};
  std::mt19937 random_{2026};
};

TEST_F(FileStreams, AReaderFollowsTheRecordsOfAFile) {
  create("flow.nc", 1);
  const auto box = put(1, Schema::box(), {0, {0, 0, 0}, Schema::box().shape, {}});
  std::vector<std::vector<std::byte>> records{put_record(1, 0)};
  mark(1, 1, false, {0});
  auto reader = open_reader("flow.nc");
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  for (std::int64_t record = 0; record < 4; ++record) {
    ASSERT_EQ(*reader->begin_step(soon()), api::StepState::kOk);
    EXPECT_EQ(reader->step(), static_cast<std::uint64_t>(record));
    ASSERT_NE(reader->source(), nullptr);
    EXPECT_EQ(reader->source()->kind, api::Source::Kind::kRecord);
    EXPECT_EQ(reader->source()->record, record);
    ASSERT_NE(reader->source()->header, nullptr);
    EXPECT_NE(staging::parse_classic_header(*reader->source()->header)->find("history"), nullptr);
    ASSERT_NE(reader->find("history"), nullptr);
    EXPECT_EQ(reader->find("history")->shape, (api::Extents{Schema::kRecordY, Schema::kRecordX}));
    expect_got(*reader, "history", a_record(), records.back());
    expect_got(*reader, "box", a_box(), box);  // a constant
    const auto figures = reader->figures("box", a_box(), soon());
    ASSERT_TRUE(figures.ok());
    EXPECT_EQ(figures->elements, static_cast<std::uint64_t>(box.size() / 4));
    ASSERT_TRUE(reader->end_step().ok());
    if (record == 3) break;
    records.push_back(put_record(1, record + 1));
    mark(1, record + 2);
  }
  close(1, 4);
  EXPECT_EQ(*reader->begin_step(nessie::Deadline::now()), api::StepState::kNotYet);  // it may be opened again
  client_.reset();
  EXPECT_EQ(*reader->begin_step(soon()), api::StepState::kEnd);
  EXPECT_EQ(reader->why_ended(), "");
}

TEST_F(FileStreams, AFileThatIsOpenedOnceMoreGoesOn) {
  create("flow.nc", 1);
  const auto first = put_record(1, 0);
  mark(1, 1, true);
  close(1, 1);
  auto reader = open_reader("flow.nc");
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  ASSERT_EQ(*reader->begin_step(soon()), api::StepState::kOk);
  expect_got(*reader, "history", a_record(), first);
  ASSERT_TRUE(reader->end_step().ok());
  const auto path = service_.file("flow.nc");
  ASSERT_EQ(client_->open({2, path, NC_WRITE, {}}, staging::testing::program_file(path).get())->nc_error, NC_NOERR);
  order_ = staging::Order(1);
  const auto second = put_record(2, 1);
  mark(2, 2, true);
  close(2, 2);
  ASSERT_EQ(*reader->begin_step(soon()), api::StepState::kOk);
  EXPECT_EQ(reader->step(), 1U);
  expect_got(*reader, "history", a_record(), second);
  ASSERT_TRUE(reader->end_step().ok());
  client_.reset();
  EXPECT_EQ(*reader->begin_step(soon()), api::StepState::kEnd);
}

TEST_F(FileStreams, AFileThatIsMadeAnewIsAnotherStream_AndTheFormerOneSaysSo) {
  create("flow.nc", 1);
  (void)put_record(1, 0);
  mark(1, 1);
  auto former = open_reader("flow.nc");
  ASSERT_TRUE(former.ok()) << former.error().message;
  ASSERT_EQ(*former->begin_step(soon()), api::StepState::kOk);
  ASSERT_TRUE(former->end_step().ok());
  close(1, 1);
  create("flow.nc", 2);
  ASSERT_EQ(*former->begin_step(soon()), api::StepState::kEnd);
  EXPECT_NE(former->why_ended().find("anew"), std::string::npos) << former->why_ended();
  std::vector<std::vector<std::byte>> records{put_record(2, 0), put_record(2, 1)};
  mark(2, 2, true);
  close(2, 2);
  auto reader = open_reader("flow.nc");
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_NE(reader->identity(), former->identity());
  for (const auto &record : records) {
    ASSERT_EQ(*reader->begin_step(soon()), api::StepState::kOk);
    expect_got(*reader, "history", a_record(), record);
    ASSERT_TRUE(reader->end_step().ok());
  }
}

TEST_F(FileStreams, WhoComesLateReadsAClosedFile_AndWhatWasWrittenOverIsNotThere) {
  create("flow.nc", 1);
  const auto first = put_record(1, 0);
  mark(1, 1);
  const auto second = put_record(1, 1);
  mark(1, 2);
  (void)put_record(1, 0);
  close(1, 2);
  auto reader = open_reader("flow.nc");
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  ASSERT_EQ(*reader->begin_step(soon()), api::StepState::kOk);
  std::vector<std::byte> data(first.size());
  EXPECT_EQ(reader->get("history", a_record(), data.data(), data.size(), soon()).code(), Code::kNotFound);
  ASSERT_TRUE(reader->end_step().ok());
  ASSERT_EQ(*reader->begin_step(soon()), api::StepState::kOk);
  expect_got(*reader, "history", a_record(), second);
  ASSERT_TRUE(reader->end_step().ok());
  client_.reset();
  EXPECT_EQ(*reader->begin_step(soon()), api::StepState::kEnd);
}

TEST_F(FileStreams, AFileThatGoesNativeEndsItsStreamAndSaysWhy) {
  create("flow.nc", 1);
  (void)put_record(1, 0);
  mark(1, 1);
  auto reader = open_reader("flow.nc");
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(*reader->begin_step(soon()), api::StepState::kOk);
  ASSERT_TRUE(reader->end_step().ok());
  ASSERT_TRUE(client_->note_native(service_.file("flow.nc"), "of its filetype").ok());
  const auto next = reader->begin_step(soon());
  ASSERT_FALSE(next.ok());
  EXPECT_NE(next.error().message.find("of its filetype"), std::string::npos) << next.error().message;
  const auto streams = api::list(server_->at(), soon());
  ASSERT_TRUE(streams.ok());
  ASSERT_EQ(streams->size(), 1U);
  EXPECT_TRUE(streams->front().is_file);
  close(1, 1);
}

}  // namespace
}  // namespace streams
