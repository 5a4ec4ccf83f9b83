// SPDX-License-Identifier: BSD-3-Clause
// Who looks on: what he hears of files, and that he reads what was there when it was complete, or nothing.
#include <services/staging/testing.hpp>

#include <map>
#include <mutex>

namespace staging {
namespace {

using namespace std::chrono_literals;
using nessie::Code;
using nessie::Deadline;
using testing::program_file;
using testing::Schema;
using testing::Service;

constexpr auto kLongEnough = 60s;
enum { kBoxId, kScalarId, kHistoryId };

Deadline soon() { return Deadline::in(kLongEnough); }

/// A program of one process that writes a file, and says what is complete as the library in front of PnetCDF does.
class Program {
 public:
  Program(Service &service, Client &client, const std::string &name, FileToken token)
      : client_(client), path_(service.file(name)), token_(token), order_(client.servers()) {}

  void create() { testing::create_file(client_, token_, path_, Schema::definitions()); }
  void open() {
    const auto opened = client_.open({token_, path_, NC_WRITE, {}, {}, 1, {}}, program_file(path_).get());
    ASSERT_TRUE(opened.ok() && opened->nc_error == NC_NOERR);
    records_ = opened->num_records;
  }
  void redefine(std::vector<Definition> definitions) {
    EndDefArgs args;
    args.file = token_, args.definitions = std::move(definitions), args.num_records = records_;
    order_ = Order(client_.servers());
    const auto ended = client_.enddef(args, false);
    ASSERT_TRUE(ended.ok() && ended->nc_error == NC_NOERR);
  }
  /// Returns what was put: all of it that piece is.
  std::vector<std::byte> put(const VariableLayout &layout, const Piece &piece) {
    auto data = testing::random_data(layout, piece, random_);
    const Item item{&layout, piece, data};
    const auto written = client_.write(token_, records_, order_, {&item, 1});
    EXPECT_TRUE(written.ok() && *written == NC_NOERR);
    order_.know(order_.end_call());
    if (layout.is_record) records_ = std::max(records_, piece.start[0] + piece.count[0]);
    return data;
  }
  std::vector<std::byte> put_record(std::int64_t record) { return put(Schema::history(), of_record(record)); }
  std::vector<std::byte> put_box() { return put(Schema::box(), {kBoxId, {0, 0, 0}, Schema::box().shape, {}}); }
  void mark(std::int64_t first, std::int64_t records, bool is_all = false) {
    client_.mark(token_, {0, 0, first, records, is_all, {}, {}}, order_);
  }
  /// Says that so much more was sent than was.
  void mark_ahead(std::int64_t records, std::int64_t writes) {
    auto order = order_;
    const std::vector<std::int64_t> more(order.sent.size(), writes);
    order.know(more);
    client_.mark(token_, {0, 0, 0, records, false, {}, {}}, order);
  }
  void close(Closing how = Closing::kDurable) {
    const auto closed = client_.close(token_, records_, how, order_);
    EXPECT_TRUE(closed.ok() && *closed == NC_NOERR);
  }
  static Piece of_record(std::int64_t record) {
    return {kHistoryId, {record, 0, 0}, {1, Schema::kRecordY, Schema::kRecordX}, {}};
  }
  const std::string &path() const { return path_; }
  FileToken token() const { return token_; }

 private:
  Client &client_;
  const std::string path_;
  const FileToken token_;
  Order order_;
  std::int64_t records_ = 0;
  std::mt19937 random_{2012};
};

/// Who looks on, and what he has heard.
class Onlooker {
 public:
  explicit Onlooker(Service &service) : watcher_(service.watcher()) {}
  Watcher &watcher() { return *watcher_; }

  /// Listens until that is so.
  template <class Condition> void listen(Condition condition) {
    while (!condition()) {
      const auto news = watcher_->next(soon());
      ASSERT_TRUE(news.ok()) << news.error().message;
      ASSERT_FALSE(news->is_empty());
      for (const auto &file : news->files) note(file);
      for (const auto &note : news->native) native.push_back(note);
      is_over = is_over || news->is_over;
      if (is_over) break;
    }
  }
  void await_marks(FileToken token, std::size_t count) {
    listen([&] { return files[token].marks.size() >= count; });
  }
  void await_closed(FileToken token) {
    listen([&] { return files[token].stage == FileStage::kClosed; });
  }
  /// kOk, and it is what was put; or why not.
  Code read(FileToken token, const Mark &mark, const VariableLayout &layout, const Piece &piece,
            const std::vector<std::byte> &expected) {
    std::vector<std::byte> data(expected.size(), std::byte{0xA5});
    const auto status = watcher_->read(token, mark, layout.varid, {piece.start, piece.count}, data, soon());
    if (status.ok()) { EXPECT_EQ(data, expected); }
    return status.code();
  }
  Code read_record(FileToken token, const Mark &mark, std::int64_t record, const std::vector<std::byte> &expected) {
    return read(token, mark, Schema::history(), Program::of_record(record), expected);
  }
  Code read_box(FileToken token, const Mark &mark, const std::vector<std::byte> &expected) {
    return read(token, mark, Schema::box(), {kBoxId, {0, 0, 0}, Schema::box().shape, {}}, expected);
  }
  Mark last_mark(FileToken token) { return files[token].marks.back(); }

  std::map<FileToken, WatchedFile> files;
  std::vector<NativeNote> native;
  bool is_over = false;

 private:
  void note(const WatchedFile &file) {
    auto marks = std::move(files[file.file].marks);
    marks.insert(marks.end(), file.marks.begin(), file.marks.end());
    files[file.file] = file;
    files[file.file].marks = std::move(marks);
  }
  std::unique_ptr<Watcher> watcher_;
};

class StagingWatch : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    service_.emplace(GetParam(), Mode::kCaching, 64 << 20);
    client_ = service_->client();
    ASSERT_NE(client_, nullptr);
  }
  Program program(FileToken token, const std::string &name = "watched.nc") {
    return {*service_, *client_, name, token};
  }

  std::optional<Service> service_;
  std::unique_ptr<Client> client_;
};

TEST_P(StagingWatch, RecordsAreReadAsSoonAsTheyAreComplete) {
  auto writer = program(1);
  Onlooker onlooker(*service_);
  writer.create();
  for (std::int64_t record = 0; record < 4; ++record) {
    const auto data = writer.put_record(record);
    writer.mark(record, record + 1);
    onlooker.await_marks(1, static_cast<std::size_t>(record) + 1);
    EXPECT_EQ(onlooker.files[1].path, writer.path());
    EXPECT_EQ(onlooker.last_mark(1).records, record + 1);
    EXPECT_EQ(onlooker.read_record(1, onlooker.last_mark(1), record, data), Code::kOk);
  }
  writer.close();
}

TEST_P(StagingWatch, WhoComesLateReadsWhatWasCompleteLongAgo_FromPagesOrTheFile) {
  auto writer = program(1);
  writer.create();
  const auto box = writer.put_box(), first = writer.put_record(0), second = writer.put_record(1);
  writer.mark(0, 2, true);
  (void)writer.put_record(2);
  Onlooker late(*service_);
  late.await_marks(1, 1);
  for (const bool is_closed : {false, true}) {
    if (is_closed) {
      writer.close(Closing::kEarly);
      late.await_closed(1);
    }
    EXPECT_EQ(late.read_box(1, late.last_mark(1), box), Code::kOk);
    EXPECT_EQ(late.read_record(1, late.last_mark(1), 0, first), Code::kOk);
    EXPECT_EQ(late.read_record(1, late.last_mark(1), 1, second), Code::kOk);
  }
  Onlooker later(*service_);
  later.await_closed(1);
  later.await_marks(1, 1);
  EXPECT_EQ(later.read_record(1, later.last_mark(1), 1, second), Code::kOk);
}

TEST_P(StagingWatch, AnyBoxIsItsPartOfTheWhole) {
  auto writer = program(1);
  writer.create();
  const auto all = writer.put_box();
  const auto scalar = writer.put(Schema::scalar(), {kScalarId, {}, {}, {}});
  writer.mark(0, 0, true);
  Onlooker onlooker(*service_);
  onlooker.await_marks(1, 1);
  std::mt19937 random(7);
  for (const bool is_closed : {false, true}) {
    for (int i = 0; i < 20; ++i) {
      Piece piece{kBoxId, {}, {}, {}};
      for (const auto size : Schema::box().shape) {
        piece.start.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size)));
        piece.count.push_back(
            1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size - piece.start.back())));
      }
      std::vector<std::byte> part;
      for (RunCursor runs(Schema::box(), piece); !runs.done(); runs.consume(runs.run().size()))
        part.insert(part.end(), all.begin() + runs.run().begin * 4, all.begin() + runs.run().end * 4);
      EXPECT_EQ(onlooker.read(1, onlooker.last_mark(1), Schema::box(), piece, part), Code::kOk);
    }
    EXPECT_EQ(onlooker.read(1, onlooker.last_mark(1), Schema::scalar(), {kScalarId, {}, {}, {}}, scalar), Code::kOk);
    if (!is_closed) writer.close();
    onlooker.await_closed(1);
  }
}

TEST_P(StagingWatch, WhatWasWrittenOverSinceIsNotFound_AndTheRestIs) {
  auto writer = program(1);
  writer.create();
  const auto box = writer.put_box(), first = writer.put_record(0), second = writer.put_record(1);
  writer.mark(0, 2, true);
  const auto again = writer.put_record(0);
  Onlooker onlooker(*service_);
  onlooker.await_marks(1, 1);
  const auto old = onlooker.last_mark(1);
  EXPECT_EQ(onlooker.read_record(1, old, 0, first), Code::kNotFound);
  EXPECT_EQ(onlooker.read_record(1, old, 1, second), Code::kOk);
  EXPECT_EQ(onlooker.read_box(1, old, box), Code::kOk);
  writer.mark(2, 2);
  onlooker.await_marks(1, 2);
  EXPECT_EQ(onlooker.read_record(1, onlooker.last_mark(1), 0, again), Code::kOk);
  EXPECT_EQ(onlooker.read_record(1, old, 0, first), Code::kNotFound);
  (void)writer.put_box();
  EXPECT_EQ(onlooker.read_box(1, onlooker.last_mark(1), box), Code::kNotFound);
  writer.close();
  onlooker.await_closed(1);
  EXPECT_EQ(onlooker.read_record(1, old, 0, first), Code::kNotFound);
  EXPECT_EQ(onlooker.read_record(1, old, 1, second), Code::kOk);
}

/// Whatever is written meanwhile, a read gets all of one version, or nothing.
TEST_P(StagingWatch, WhatIsBeingWrittenOverIsNeverMixed) {
  auto writer = program(1);
  writer.create();
  (void)writer.put_record(0);
  writer.mark(0, 1);
  Onlooker onlooker(*service_);
  onlooker.await_marks(1, 1);
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<std::byte>> versions;  // by mark
  std::thread program([&] {
    for (std::uint64_t number = 2; number < 100; ++number) {
      const auto data = writer.put_record(0);
      const std::lock_guard lock(mutex);
      versions[number] = data;
      writer.mark(1, 1);
    }
  });
  int read = 0;
  while (onlooker.last_mark(1).number < 99) {
    onlooker.await_marks(1, onlooker.files[1].marks.size() + 1);
    const auto mark = onlooker.last_mark(1);
    std::vector<std::byte> expected;
    {
      const std::lock_guard lock(mutex);
      expected = versions[mark.number];
    }
    const auto code = onlooker.read_record(1, mark, 0, expected);
    EXPECT_TRUE(code == Code::kOk || code == Code::kNotFound);
    read += code == Code::kOk ? 1 : 0;
  }
  program.join();
  EXPECT_GE(read, 1);  // the last one, if no other
  writer.close();
}

TEST_P(StagingWatch, AReadWaitsForWhatIsOnItsWay_AndHoldsUpNothing) {
  auto writer = program(1);
  writer.create();
  writer.mark_ahead(1, 1);
  Onlooker onlooker(*service_);
  onlooker.await_marks(1, 1);
  std::vector<std::byte> data(Schema::kRecordY * Schema::kRecordX * 8);
  const nessie::service::Box box{{0, 0, 0}, {1, Schema::kRecordY, Schema::kRecordX}};
  const auto read = [&](Deadline deadline) {
    return onlooker.watcher().read(1, onlooker.last_mark(1), kHistoryId, box, data, deadline).code();
  };
  EXPECT_EQ(read(Deadline::in(200ms)), Code::kTimedOut);
  auto waiting = std::async([&] { return read(soon()); });
  const auto put = writer.put_record(0);
  EXPECT_EQ(waiting.get(), Code::kOk);
  EXPECT_EQ(data, put);
  writer.mark_ahead(1, 5);
  onlooker.await_marks(1, 2);
  waiting = std::async([&] { return read(soon()); });
  writer.close();
  EXPECT_EQ(waiting.get(), Code::kOk);
}

TEST_P(StagingWatch, ANewHeaderIsTold_AndWhatWasCompleteBeforeStaysSo) {
  auto writer = program(1);
  writer.create();
  Onlooker onlooker(*service_);
  const auto record = writer.put_record(0), box = writer.put_box();
  writer.mark(0, 1, true);
  onlooker.await_marks(1, 1);
  const auto headers = onlooker.files[1].headers;
  EXPECT_EQ((*onlooker.watcher().header(1, soon()))->variables.size(), 3U);
  writer.redefine({testing::var("later", NC_DOUBLE, {1, 2, 3}), testing::attribute("title", "of another length")});
  onlooker.listen([&] { return onlooker.files[1].headers > headers; });
  const auto header = *onlooker.watcher().header(1, soon());
  ASSERT_EQ(header->variables.size(), 4U);
  EXPECT_EQ(header->variables[3].name, "later");
  EXPECT_EQ(header->variables[3].dimensions, (std::vector<std::string>{"z", "y", "x"}));
  ASSERT_EQ(header->attributes.size(), 1U);
  const auto old = onlooker.last_mark(1);
  EXPECT_EQ(onlooker.read_record(1, old, 0, record), Code::kOk);
  EXPECT_EQ(onlooker.read_box(1, old, box), Code::kOk);
  const auto again = writer.put_record(0);
  EXPECT_EQ(onlooker.read_record(1, old, 0, record), Code::kNotFound);
  writer.mark(1, 1);
  onlooker.await_marks(1, 2);
  EXPECT_EQ(onlooker.read_record(1, onlooker.last_mark(1), 0, again), Code::kOk);
  writer.close();
  onlooker.await_closed(1);
  EXPECT_EQ(onlooker.read_box(1, old, box), Code::kOk);
  EXPECT_EQ((*onlooker.watcher().header(1, soon()))->variables.size(), 4U);
}

TEST_P(StagingWatch, AFileThatIsOpenedAgainKeepsWhatIsNotWrittenOver) {
  auto writer = program(1);
  writer.create();
  const auto first = writer.put_record(0), second = writer.put_record(1);
  writer.mark(0, 2, true);
  writer.close();
  Onlooker onlooker(*service_);
  onlooker.await_marks(1, 1);
  onlooker.await_closed(1);
  EXPECT_EQ(onlooker.read_record(1, onlooker.last_mark(1), 0, first), Code::kOk);
  auto later = program(2);
  later.open();
  const auto third = later.put_record(2);
  later.mark(0, 3);
  onlooker.await_marks(2, 1);
  const auto old = onlooker.last_mark(1);
  EXPECT_EQ(onlooker.read_record(1, old, 0, first), Code::kOk);
  EXPECT_EQ(onlooker.read_record(2, onlooker.last_mark(2), 2, third), Code::kOk);
  EXPECT_EQ(onlooker.read_record(2, onlooker.last_mark(2), 1, second), Code::kOk);
  (void)later.put_record(0);
  EXPECT_EQ(onlooker.read_record(1, old, 0, first), Code::kNotFound);
  later.close();
  onlooker.await_closed(2);
  EXPECT_EQ(onlooker.read_record(1, old, 0, first), Code::kNotFound);
  EXPECT_EQ(onlooker.read_record(1, old, 1, second), Code::kOk);
}

TEST_P(StagingWatch, OfAFileThatIsCreatedOverNothingOldIsRead) {
  auto writer = program(1);
  writer.create();
  const auto first = writer.put_record(0);
  writer.mark(0, 1, true);
  writer.close();
  Onlooker onlooker(*service_);
  onlooker.await_marks(1, 1);
  auto other = program(2);
  other.create();
  EXPECT_EQ(onlooker.read_record(1, onlooker.last_mark(1), 0, first), Code::kNotFound);
  const auto second = other.put_record(0);
  other.mark(0, 1);
  onlooker.await_marks(2, 1);
  EXPECT_EQ(onlooker.read_record(2, onlooker.last_mark(2), 0, second), Code::kOk);
  other.close();
}

TEST_P(StagingWatch, AFileThatOtherHandsChangeOrRemoveIsNotRead) {
  for (const bool is_removed : {false, true}) {
    const FileToken token = is_removed ? 1 : 2;
    auto writer = program(token, is_removed ? "removed.nc" : "changed.nc");
    writer.create();
    const auto data = writer.put_record(0);
    writer.mark(0, 1, true);
    writer.close();
    Onlooker onlooker(*service_);
    onlooker.await_closed(token);
    onlooker.await_marks(token, 1);
    EXPECT_EQ(onlooker.read_record(token, onlooker.last_mark(token), 0, data), Code::kOk);
    if (is_removed)
      std::filesystem::remove(writer.path());
    else
      std::filesystem::resize_file(writer.path(), std::filesystem::file_size(writer.path()) + 4);
    Onlooker late(*service_);
    late.await_closed(token);
    EXPECT_EQ(late.read_record(token, onlooker.last_mark(token), 0, data), Code::kNotFound);
    EXPECT_EQ(onlooker.read_record(token, onlooker.last_mark(token), 0, data), Code::kNotFound);
  }
}

TEST_P(StagingWatch, WhatWentNativeIsTold) {
  Onlooker onlooker(*service_);
  ASSERT_TRUE(client_->note_native("/native.nc", "it is a netCDF-4 file").ok());
  onlooker.listen([&] { return !onlooker.native.empty(); });
  EXPECT_EQ(onlooker.native[0].path, "/native.nc");
  EXPECT_EQ(onlooker.native[0].why, "it is a netCDF-4 file");
}

TEST_P(StagingWatch, AtTheEndOfTheServersWhatWasClosedIsStillRead) {
  auto writer = program(1);
  writer.create();
  const auto box = writer.put_box(), record = writer.put_record(0);
  writer.mark(0, 1, true);
  writer.close(Closing::kEarly);
  Onlooker onlooker(*service_);
  onlooker.await_marks(1, 1);
  auto stopping = std::async([&] { service_->stop(); });
  onlooker.listen([&] { return onlooker.is_over; });
  stopping.get();
  EXPECT_TRUE(onlooker.is_over);
  EXPECT_EQ(onlooker.files[1].stage, FileStage::kClosed);
  EXPECT_EQ(onlooker.read_box(1, onlooker.last_mark(1), box), Code::kOk);
  EXPECT_EQ(onlooker.read_record(1, onlooker.last_mark(1), 0, record), Code::kOk);
  EXPECT_TRUE(onlooker.watcher().next(soon())->is_over);
}

TEST_P(StagingWatch, WhatIsAskedForWronglyIsSaid) {
  auto writer = program(1);
  writer.create();
  const auto data = writer.put_record(0);
  writer.mark(0, 1);
  Onlooker onlooker(*service_);
  onlooker.await_marks(1, 1);
  auto &watcher = onlooker.watcher();
  const auto mark = onlooker.last_mark(1);
  std::vector<std::byte> memory(data.size());
  const auto read = [&](FileToken token, const Mark &by, int varid, const nessie::service::Box &box) {
    return watcher.read(token, by, varid, box, memory, soon()).code();
  };
  const nessie::service::Box all{{0, 0, 0}, {1, Schema::kRecordY, Schema::kRecordX}};
  EXPECT_EQ(read(9, mark, kHistoryId, all), Code::kNotFound);
  EXPECT_EQ(read(1, mark, 7, all), Code::kOutOfRange);
  EXPECT_EQ(read(1, mark, -1, all), Code::kOutOfRange);
  EXPECT_EQ(read(1, mark, kHistoryId, {{1, 0, 0}, all.count}), Code::kOutOfRange);
  EXPECT_EQ(read(1, mark, kHistoryId, {{0, 1, 0}, all.count}), Code::kOutOfRange);
  EXPECT_EQ(read(1, mark, kHistoryId, {{0, -1, 0}, all.count}), Code::kOutOfRange);
  EXPECT_EQ(read(1, mark, kHistoryId, {{0, 0}, {1, 1}}), Code::kInvalidArgument);
  EXPECT_EQ(read(1, mark, kHistoryId, {{0, 0, 0}, {1, 1, 1}}), Code::kInvalidArgument);
  auto bad = mark;
  bad.after.clear();
  EXPECT_EQ(read(1, bad, kHistoryId, all), Code::kInvalidArgument);
  bad = mark, bad.definition = 9;
  EXPECT_EQ(read(1, bad, kHistoryId, all), Code::kInvalidArgument);
  EXPECT_EQ(read(1, mark, kHistoryId, all), Code::kOk);
  writer.close();
}

INSTANTIATE_TEST_SUITE_P(Servers, StagingWatch, ::testing::Values(1, 2));

// --- by the operations themselves ----------------------------------------------------------------------------------------

class StagingLooksOn : public ::testing::Test {
 protected:
  void SetUp() override {
    nssi::RuntimeOptions options;
    options.endpoint.listen = false;
    runtime_ = *nssi::Runtime::open(std::move(options));
    const auto url = service_.urls().substr(0, service_.urls().find(' '));
    stub_.emplace(*runtime_, *runtime_->connect(url, soon()));
  }

  Service service_{1, Mode::kCaching, 64 << 20};
  std::unique_ptr<nssi::Runtime> runtime_;
  std::optional<STAGING::CURRENT::Client> stub_;
};

TEST_F(StagingLooksOn, WhoWaitsTooOftenAtOnceIsRefused) {
  const auto now = *stub_->watch({0, 0, 0}, {.deadline = soon()});
  const WatchArgs nothing_new{now.incarnation, now.seen, 60'000};
  std::vector<nssi::Future<WatchResult>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(stub_->watch_async(nothing_new, {.deadline = soon()}));
  EXPECT_EQ(stub_->watch(nothing_new, {.deadline = soon()}).code(), Code::kBusy);
  const auto client = service_.client();
  EXPECT_TRUE(client->note_native("/n.nc", "why").ok());
  for (auto &each : waiting) EXPECT_EQ(each.wait(soon())->native.size(), 1U);
}

TEST_F(StagingLooksOn, AWatchEndsAtItsDeadlineWithoutNews) {
  const auto now = *stub_->watch({0, 0, 0}, {.deadline = soon()});
  const auto later = stub_->watch({now.incarnation, now.seen, 20}, {.deadline = soon()});
  ASSERT_TRUE(later.ok());
  EXPECT_TRUE(later->files.empty() && later->native.empty());
  EXPECT_EQ(later->seen, now.seen);
}

TEST_F(StagingLooksOn, WhatNobodyWouldAskForChangesNothing) {
  const auto client = service_.client();
  Program writer(service_, *client, "bad.nc", 1);
  writer.create();
  const auto data = writer.put_record(0);
  writer.mark(0, 1);
  const auto pieces = PieceList(Program::of_record(0)).bytes();
  const auto read = [&](const MarkedReadArgs &args) { return stub_->read_marked(args, {.deadline = soon()}); };
  EXPECT_EQ(read({9, 1, {1, 1}, 1, 0, pieces}).code(), Code::kNotFound);
  EXPECT_EQ(read({1, 0, {1, 1}, 1, 0, pieces}).code(), Code::kInvalidArgument);
  EXPECT_EQ(read({1, 2, {1, 1}, 1, 0, pieces}).code(), Code::kInvalidArgument);
  EXPECT_EQ(read({1, 1, {1, 1}, -1, 0, pieces}).code(), Code::kInvalidArgument);
  EXPECT_EQ(read({1, 1, {1, 1}, 0, 1000, pieces}).code(), Code::kOutOfRange);
  EXPECT_EQ(read({1, 1, {1'000'000, 1'000'000}, 1, 10, pieces}).code(), Code::kTimedOut);
  EXPECT_EQ(read({1, 1, {1, 1}, 1, 1000, PieceList(Program::of_record(7)).bytes()}).code(), Code::kOutOfRange);
  const auto many = PieceList(Piece{kHistoryId, {0, 0, 0}, {100, Schema::kRecordY, Schema::kRecordX}, {}}).bytes();
  EXPECT_EQ(read({1, 1, {1, 1}, 100, 1000, many}).code(), Code::kInvalidArgument);
  EXPECT_EQ(read({1, 1, {1, 1}, 1, 1000, Bytes(5, std::byte{0xFF})})->state, MarkedState::kMarkedGone);
  const auto outside = PieceList(Piece{kHistoryId, {0, 0, 0}, {1, Schema::kRecordY + 1, 1}, {}}).bytes();
  EXPECT_EQ(read({1, 1, {1, 1}, 1, 1000, outside}).code(), Code::kInvalidArgument);
  EXPECT_EQ(stub_->header(99, {.deadline = soon()}).code(), Code::kNotFound);
  const auto right = read({1, 1, {1, 1}, 1, 60'000, pieces});
  ASSERT_TRUE(right.ok()) << right.error().message;
  EXPECT_EQ(right->state, MarkedState::kMarkedHere);
  EXPECT_EQ(right->data, data);
  writer.close();
}

TEST_F(StagingLooksOn, AMarkOfNoFileIsDropped) {
  EXPECT_TRUE(stub_->mark({99, {1, 1, 0, 1, false, {}, {}}}, {.deadline = soon()}).ok());
  EXPECT_TRUE(stub_->watch({0, 0, 0}, {.deadline = soon()})->files.empty());
}

}  // namespace
}  // namespace staging
