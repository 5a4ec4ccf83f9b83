// SPDX-License-Identifier: BSD-3-Clause
// Writes that go on behind their program's back: pieces of all sizes, and the order between clients that share a file.
#include <services/staging/twins_testing.hpp>

#include <numeric>
#include <tuple>

namespace staging {
namespace {

using testing::contents;
using testing::Schema;
using testing::Service;
using testing::StagingTest;
using testing::Twins;
using namespace std::chrono_literals;

constexpr std::int64_t kLength = 24 << 20;
constexpr std::size_t kSmall = 48 << 10, kPack = 256 << 10,
                      kCopied = 4 << 20;  // where a piece begins to travel in another way
const VariableLayout kLine{0, 1, false, {kLength}};

using Settings = std::vector<std::pair<std::string, std::string>>;
struct Range {
  std::int64_t start, size;
};

/// What a write of `value` writes to a range: something that differs from place to place.
std::vector<std::byte> content(Range range, unsigned value) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(range.size));
  const auto start = static_cast<std::size_t>(range.start);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(value + (start + i) * 31);
  return bytes;
}

/// A file and what it must hold: one variable of bytes, the last in the file.
class SharedFile {
 public:
  SharedFile(Service &service, Client &owner, const std::string &name) : path_(service.file(name)) {
    const auto defined =
        testing::create_file(owner, token, path_, {testing::dim("x", kLength), testing::var("line", NC_BYTE, {0})});
    for (const auto byte : std::span(defined.header).last(8))  // where CDF-5 says it
      begin_ = begin_ << 8 | std::to_integer<std::size_t>(byte);
  }
  void expect(Range range, unsigned value) { std::ranges::copy(content(range, value), wanted.begin() + range.start); }
  void expect_in_file() const {
    auto bytes = contents(path_);
    bytes.resize(begin_ + wanted.size());  // what nobody wrote at the end is not there
    const auto data = std::as_bytes(std::span(bytes)).subspan(begin_);
    const auto [differs, same] = std::mismatch(wanted.begin(), wanted.end(), data.begin());
    EXPECT_TRUE(differs == wanted.end()) << "the file is wrong from element " << differs - wanted.begin();
  }
  const std::string &path() const { return path_; }

  const FileToken token = nessie::random_u64();
  std::vector<std::byte> wanted = std::vector<std::byte>(kLength);

 private:
  const std::string path_;
  std::size_t begin_ = 0;  ///< of the variable in the file
};

/// One process of a program.
class Process {
 public:
  Process(Service &service, SharedFile &file, const Settings &settings = {})
      : Process(service.client(settings), file) {}
  Process(std::unique_ptr<Client> client, SharedFile &file)
      : client_(std::move(client)), file_(file), order(client_->servers()) {}

  /// One call that writes to all ranges.
  void write(const std::vector<Range> &ranges, unsigned value) {
    std::vector<std::pair<Range, unsigned>> writes;
    for (const auto range : ranges) writes.emplace_back(range, 0);
    write_each(writes, value);
  }
  /// The same, to each range what is said beside it, and `more`.
  void write_each(const std::vector<std::pair<Range, unsigned>> &writes, unsigned more) {
    std::vector<std::vector<std::byte>> data;
    std::vector<Item> items;
    for (const auto &[range, own] : writes) {
      const auto value = own + more;
      file_.expect(range, value);
      auto &bytes = data.emplace_back(content(range, value));
      items.push_back({&kLine, Piece{0, {range.start}, {range.size}, {}}, bytes});
    }
    auto written = client_->write(file_.token, 0, order, items);
    ASSERT_TRUE(written.ok()) << written.error().message;
    EXPECT_EQ(*written, NC_NOERR);
    for (auto &bytes : data) std::ranges::fill(bytes, std::byte{0xEE});  // the memory is ours again
  }
  /// Ends a collective call whose other processes have sent `theirs`.
  void end_call(std::vector<std::int64_t> theirs = {}) {
    theirs.resize(order.sent.size());
    const auto mine = order.end_call();
    std::ranges::transform(mine, theirs, theirs.begin(), std::plus<>());
    order.know(theirs);
  }
  void expect_read(Range range) {
    std::vector<std::byte> data(static_cast<std::size_t>(range.size));
    const Item item{&kLine, Piece{0, {range.start}, {range.size}, {}}, data};
    auto got = client_->read(file_.token, 0, order, {&item, 1});
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(*got, NC_NOERR);
    const auto [differs, same] = std::mismatch(data.begin(), data.end(), file_.wanted.begin() + range.start);
    EXPECT_TRUE(differs == data.end()) << "of " << range.size << " elements from " << range.start
                                       << " on the first that is wrong is number " << differs - data.begin();
  }
  int close(bool durable) {
    auto closed = client_->close(file_.token, 0, durable ? Closing::kDurable : Closing::kEarly, order);
    EXPECT_TRUE(closed.ok()) << closed.error().message;
    return closed.ok() ? *closed : -1;
  }
  Client &client() { return *client_; }

 private:
  std::unique_ptr<Client> client_;
  SharedFile &file_;

 public:
  Order order;
};

/// Ends the same collective call of both.
void end_call(Process &a, Process &b) {
  const auto of_a = a.order.sent, of_b = b.order.sent;
  a.end_call(of_b);
  b.end_call(of_a);
}

/// Servers, transport, memory.
class StagingBehind : public ::testing::TestWithParam<std::tuple<int, std::string, std::uint64_t>> {
 protected:
  void SetUp() override {
    for (const auto &info : nnti::Endpoint::survey({}))
      if (info.name == transport() && !info.available) GTEST_SKIP() << "this machine has no transport " << transport();
    start(30s);
  }
  void start(std::chrono::milliseconds client_timeout) {
    const auto [servers, over, memory] = GetParam();
    service_ = std::make_unique<Service>(servers, Mode::kCaching, memory, over, client_timeout);
  }
  static std::string transport() { return std::get<1>(GetParam()); }
  /// Whether writes of moderate size go on behind the program's back.
  static bool goes_behind() { return transport() == "shm"; }

  /// A process that has made the file.
  Process make(std::optional<SharedFile> &file, const std::string &name, const Settings &settings = {}) {
    auto client = service_->client(settings);
    file.emplace(*service_, *client, name);
    return Process(std::move(client), *file);
  }
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  /// Mostly small, sometimes large.
  Range any_range(std::int64_t largest) {
    const auto size = pick(1, std::max<std::int64_t>(1, largest >> pick(0, 10)));
    return {pick(0, kLength - size), size};
  }

  std::unique_ptr<Service> service_;
  std::mt19937 random_{2026};
};

TEST_P(StagingBehind, PiecesOfAllSizesArrive) {
  std::optional<SharedFile> file;
  auto process = make(file, "sizes.nc");
  std::vector<Range> ranges;
  std::int64_t at = 0;
  constexpr std::size_t kAround[] = {2, 4096, kSmall, 64 << 10, kPack, 1 << 20, kCopied};
  for (const auto around : kAround)
    for (const int off : {-1, 0, 1}) {
      ranges.push_back({at, static_cast<std::int64_t>(around) + off});
      at += ranges.back().size + off + 1;
    }
  unsigned value = 0;
  for (const auto &range : ranges) process.write({range}, ++value);  // a call for each
  process.expect_read({0, at});
  process.write(ranges, ++value);  // one call for all
  process.expect_read({0, at});
  process.end_call();
  EXPECT_EQ(process.close(true), NC_NOERR);
  file->expect_in_file();
}

TEST_P(StagingBehind, PacksAreFilledToTheBrimAndBeyond) {
  std::optional<SharedFile> file;
  auto process = make(file, "packs.nc");
  std::int64_t at = 0;
  unsigned value = 0;
  for (const auto size : {kPack / 8, kPack / 8 - 1, kPack / 8 + 1, kSmall - 1, kPack / 6, std::size_t{1}}) {
    std::vector<Range> ranges;
    for (int i = 0; i < 40; ++i, at += static_cast<std::int64_t>(size))
      ranges.push_back({at, static_cast<std::int64_t>(size)});
    process.write(ranges, ++value);
  }
  process.expect_read({0, at});
  process.end_call();
  EXPECT_EQ(process.close(true), NC_NOERR);
  file->expect_in_file();
}

TEST_P(StagingBehind, ThousandsOfSmallPiecesInOneCallAndInThousands) {
  std::optional<SharedFile> file;
  auto process = make(file, "small.nc");
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < 20'000; ++i) ranges.push_back({i * 701, 1 + i % 13});
  process.write(ranges, 1);
  for (std::int64_t i = 0; i < 3000; ++i) process.write({{i * 5003, 1 + i % 200}}, 2);
  process.expect_read({0, kLength});
  process.end_call();
  EXPECT_EQ(process.close(true), NC_NOERR);
  file->expect_in_file();
}

TEST_P(StagingBehind, OverlappingWritesOfOneProcessKeepTheirOrder) {
  std::optional<SharedFile> file;
  auto process = make(file, "overlaps.nc");
  for (unsigned i = 0; i < 150; ++i) {
    process.write({any_range(1 << 20)}, i);
    if (i % 10 == 0) process.expect_read(any_range(4 << 20));
  }
  process.end_call();
  EXPECT_EQ(process.close(true), NC_NOERR);
  file->expect_in_file();
}

/// Large requests are pulled a slice at a time, and take turns with others; the order of those that meet is kept.
TEST_P(StagingBehind, RequestsOfOneCallThatMeetKeepTheirOrder) {
  std::optional<SharedFile> file;
  auto process = make(file, "meet.nc");
  process.order.in_order = true;
  const Range all{0, 8 << 20}, part{3 << 20, 2 << 20}, small{5 << 20, 1000};
  for (unsigned i = 0; i < 4; ++i) {
    process.write_each(
        {{all, 1}, {all, 2}, {part, 3}, {all, 4}, {small, 5}, {part, 6}, {small, 7}, {{4 << 20, 5 << 20}, 8}}, i);
    process.expect_read(all);
  }
  for (unsigned i = 0; i < 10; ++i) {
    std::vector<std::pair<Range, unsigned>> writes;
    for (unsigned j = 0; j < 12; ++j) writes.emplace_back(any_range(9 << 20), j);
    process.write_each(writes, i);
  }
  process.expect_read({0, kLength});
  process.end_call();
  EXPECT_EQ(process.close(true), NC_NOERR);
  file->expect_in_file();
}

TEST_P(StagingBehind, LargeWritesOfTheSamePlaceOneAfterTheOtherKeepTheirOrder) {
  std::optional<SharedFile> file;
  auto process = make(file, "same.nc");
  Process other(*service_, *file);
  for (unsigned i = 0; i < 6; ++i) {
    process.write({{0, 8 << 20}}, 2 * i);
    process.write({{1 << 20, 8 << 20}}, 2 * i + 1);
    end_call(process, other);
    other.write({{any_range(8 << 20)}}, 3 * i);
    end_call(other, process);
  }
  process.expect_read({0, kLength});
  EXPECT_EQ(process.close(true), NC_NOERR);
  file->expect_in_file();
}

TEST_P(StagingBehind, ATinyBufferForCopiesIsEnough) {
  for (const char *buffer : {"1", "64K", "300K"}) {
    std::optional<SharedFile> file;
    auto process = make(file, std::string("tiny") + buffer + ".nc", {{"staging.buffer", buffer}});
    for (unsigned i = 0; i < 40; ++i) process.write({any_range(1 << 20)}, i);
    process.write({{0, kCopied}, {kCopied, 1}, {kCopied + 1, kPack}, {kCopied + 1 + kPack, 5}}, 77);
    process.expect_read({0, kLength});
    process.end_call();
    EXPECT_EQ(process.close(true), NC_NOERR);
    file->expect_in_file();
  }
}

TEST_P(StagingBehind, ReadsSeeTheWritesOfAnotherProcessThatTheyKnowOf) {
  std::optional<SharedFile> file;
  auto reader = make(file, "reads.nc");
  Process writer(*service_, *file);
  for (unsigned i = 0; i < 60; ++i) {
    const auto range = any_range(2 << 20);
    writer.write({range}, i);
    end_call(reader, writer);
    reader.expect_read(range);
    if (i % 20 == 0) writer.expect_read({0, kLength});
  }
  EXPECT_EQ(reader.close(true), NC_NOERR);
  file->expect_in_file();
}

TEST_P(StagingBehind, AReadThatArrivesBeforeTheWritesThatItKnowsOfWaitsForThem) {
  std::optional<SharedFile> file, rehearsal;
  auto reader = make(file, "early.nc");
  auto rehearsing = make(rehearsal, "rehearsal.nc");
  const std::vector<Range> ranges = {{1000, 100}, {0, 100}, {5 << 20, kSmall}, {6 << 20, 1 << 20}};
  Process writer(*service_, *file);
  for (unsigned i = 0; i < 10; ++i) {
    rehearsing.write(ranges, i);
    const auto announced = rehearsing.order.end_call();
    reader.end_call(announced);
    const auto expected = rehearsal->wanted;
    std::vector<std::byte> got(7 << 20);
    const Item item{&kLine, Piece{0, {0}, {7 << 20}, {}}, got};
    std::thread reading([&] { EXPECT_EQ(*reader.client().read(file->token, 0, reader.order, {&item, 1}), NC_NOERR); });
    (void)writer.client().report(0);
    writer.write(ranges, i);
    reading.join();
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size()), 0) << i;
    EXPECT_EQ(writer.order.sent, announced);
    writer.end_call();
  }
  EXPECT_EQ(reader.close(true), NC_NOERR);
  EXPECT_EQ(rehearsing.close(true), NC_NOERR);
  file->expect_in_file();
}

TEST_P(StagingBehind, OverlappingWritesOfSeveralProcessesKeepTheOrderOfTheirCalls) {
  std::optional<SharedFile> file;
  auto first = make(file, "turns.nc");
  Process second(*service_, *file), third(*service_, *file);
  for (unsigned i = 0; i < 60; ++i) {
    Process *const processes[] = {&first, &second, &third};
    const auto base = any_range(1 << 20).start;
    auto &writer = *processes[i % 3];
    writer.write(
        {{base, std::min<std::int64_t>(kLength - base, pick(1, 1 << 20))}, {pick(0, kLength / 2), pick(1, 200)}}, i);
    const auto sent = writer.order.sent;
    for (auto *process : processes) process->end_call(process == &writer ? std::vector<std::int64_t>() : sent);
  }
  first.expect_read({0, kLength});
  third.expect_read({0, kLength});
  EXPECT_EQ(first.close(true), NC_NOERR);
  file->expect_in_file();
}

TEST_P(StagingBehind, AWriteThatArrivesBeforeTheOverlappingWriteThatItKnowsOfIsCarriedOutAfterIt) {
  if (!goes_behind()) GTEST_SKIP() << "a write returns when it was carried out";
  std::optional<SharedFile> file, rehearsal;
  auto late = make(file, "overtaken.nc");
  auto rehearsing = make(rehearsal, "rehearsal.nc");
  Process early(*service_, *file);
  const Range whole{0, 3 << 20}, half{1 << 20, 1 << 20};
  rehearsing.write({whole}, 1);
  const auto announced = rehearsing.order.end_call();
  early.end_call(announced);
  early.write({half}, 2);  // returns when it is in the server's inbox
  (void)early.client().report(0);
  late.write({whole}, 1);
  EXPECT_EQ(late.order.sent, announced);
  late.end_call();
  end_call(late, early);
  file->expect(half, 2);
  late.expect_read(whole);
  EXPECT_EQ(late.close(true), NC_NOERR);
  EXPECT_EQ(rehearsing.close(true), NC_NOERR);
  file->expect_in_file();
}

TEST_P(StagingBehind, ACloseThatArrivesBeforeTheWritesThatItKnowsOfWaitsForThem) {
  const std::vector<Range> ranges = {
      {0, 100}, {100, kSmall}, {1 << 20, kPack}, {2 << 20, kCopied}, {10 << 20, kCopied + 1}};
  for (const bool durable : {false, true}) {
    std::optional<SharedFile> file, rehearsal;
    auto owner = make(file, durable ? "durable.nc" : "closed.nc");
    auto rehearsing = make(rehearsal, "rehearsal.nc");
    Process writer(*service_, *file);
    rehearsing.write(ranges, 1);
    owner.end_call(rehearsing.order.end_call());
    std::thread closing([&] { EXPECT_EQ(owner.close(durable), NC_NOERR); });
    if (!durable) closing.join();
    (void)writer.client().report(0);
    writer.write(ranges, 1);
    if (durable) closing.join();
    ASSERT_TRUE(owner.client().settle({{}, file->path()}).ok());
    file->expect_in_file();
    EXPECT_EQ(rehearsing.close(true), NC_NOERR);
  }
}

TEST_P(StagingBehind, WritesThatNeverComeAreAnErrorOfTheFileInTheEnd) {
  start(300ms);
  for (const bool alone : {false, true}) {
    std::optional<SharedFile> file;
    auto owner = make(file, alone ? "alone.nc" : "company.nc");
    std::optional<Process> silent;
    if (!alone) silent.emplace(*service_, *file);
    owner.write({{0, 100'000}}, 1);
    owner.end_call(std::vector<std::int64_t>(owner.order.sent.size(), 1));
    EXPECT_EQ(owner.close(true), NC_EWRITE);
    std::ptrdiff_t failures = 0;
    for (int server = 0; server < owner.client().servers(); ++server) {
      const auto report = *owner.client().report(server);
      failures += std::ranges::count(report.failures, file->path(), &FileReport::path);
    }
    EXPECT_EQ(failures, owner.client().servers());
    file->expect_in_file();  // what did come
  }
}

TEST_P(StagingBehind, AReadGoesOnWithoutWritesThatNeverCome) {
  start(300ms);
  std::optional<SharedFile> file;
  auto owner = make(file, "unread.nc");
  owner.write({{0, 100'000}}, 1);
  owner.end_call(std::vector<std::int64_t>(owner.order.sent.size(), 1));
  owner.expect_read({0, 100'000});
  EXPECT_EQ(owner.close(true), NC_EWRITE);
  file->expect_in_file();
}

INSTANTIATE_TEST_SUITE_P(Over, StagingBehind,
                         ::testing::Combine(::testing::Values(1, 3), ::testing::Values("shm", "inproc"),
                                            ::testing::Values(std::uint64_t{64} << 20, std::uint64_t{64} << 10)),
                         [](const auto &info) {
                           return std::get<1>(info.param) + std::to_string(std::get<0>(info.param)) +
                                  (std::get<2>(info.param) > (1 << 20) ? "Large" : "Small");
                         });

TEST_P(StagingTest, ARunFromTheMiddleOfOneRecordToTheMiddleOfAnotherIsWritten) {
  auto definitions = Schema::definitions();
  definitions.push_back(testing::var("short_records", NC_FLOAT, {0, 1}));
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
  definitions.push_back(testing::var("list", NC_INT, {0}));
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

}  // namespace
}  // namespace staging
