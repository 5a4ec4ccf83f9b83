// SPDX-License-Identifier: BSD-3-Clause
// What is told to whom when something is wrong, or missing, or full.
#include <services/streams/testing.hpp>

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

namespace streams {
namespace {

using namespace testing;
using api::Box;
using api::From;
using api::Reader;
using api::ReaderOptions;
using api::Reading;
using api::StepState;
using api::Type;
using api::Writer;
using api::WriterOptions;
using nessie::Code;

class Streams : public ::testing::Test {
 protected:
  explicit Streams(const ServerOptions &options = {}, std::uint32_t servers = 1) : servers_(servers, options) {}
  Servers servers_;

  nessie::Result<Writer> try_open(const std::string &name, WriterOptions options = {}) {
    options.at = servers_.at();
    return Writer::open(name, options, soon());
  }
  Writer open_writer(const std::string &name, const WriterOptions &options = {}) {
    auto writer = try_open(name, options);
    EXPECT_TRUE(writer.ok()) << writer.error().message;
    return *std::move(writer);
  }
  nessie::Result<Reader> try_read(const std::string &name, ReaderOptions options = {}, Deadline deadline = soon()) {
    options.at = servers_.at();
    return Reader::open(name, options, deadline);
  }
  Reader open_reader(const std::string &name, const ReaderOptions &options = {}) {
    auto reader = try_read(name, options);
    EXPECT_TRUE(reader.ok()) << reader.error().message;
    return *std::move(reader);
  }
  static void write_step(Writer &writer, std::int64_t elements = 4, Code expected = Code::kOk) {
    auto begun = writer.begin_step(soon());
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    ASSERT_EQ(*begun, StepState::kOk);
    ASSERT_TRUE(writer.define({"x", Type::kDouble, {elements}, {}, false}).ok());
    const auto values = values_of(writer.step(), {{0}, {elements}});
    ASSERT_TRUE(writer.put("x", {{0}, {elements}}, values.data()).ok());
    ASSERT_EQ(writer.end_step(soon()).code(), expected);
  }
  /// The next step, which has to be that one, whole.
  static void expect_step(Reader &reader, std::uint64_t number, std::int64_t elements = 4) {
    auto begun = reader.begin_step(soon());
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    ASSERT_EQ(*begun, StepState::kOk);
    ASSERT_EQ(reader.step(), number);
    std::vector<double> values(static_cast<std::size_t>(elements));
    auto got = reader.get("x", {{0}, {elements}}, values.data(), values.size() * sizeof(double), soon());
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_EQ(values, values_of(number, {{0}, {elements}}));
    ASSERT_TRUE(reader.end_step().ok());
  }
};

// --- mistakes ---------------------------------------------------------------------------------------------------------

TEST_F(Streams, Put_WhatCannotBe_IsToldAndChangesNothing) {
  auto writer = open_writer("s");
  ASSERT_TRUE(writer.define({"x", Type::kDouble, {4}, {}, false}).ok());
  const std::vector<double> values(4, 1.0);
  EXPECT_EQ(writer.put("x", {{0}, {4}}, values.data()).code(), Code::kInvalidArgument);  // no step is open
  EXPECT_EQ(writer.end_step(soon()).code(), Code::kInvalidArgument);
  ASSERT_EQ(writer.begin_step(soon()).value(), StepState::kOk);
  EXPECT_EQ(writer.begin_step(soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer.put("y", {{0}, {4}}, values.data()).code(), Code::kNotFound);
  EXPECT_EQ(writer.put("x", {{0, 0}, {4, 1}}, values.data()).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer.put("x", {{1}, {4}}, values.data()).code(), Code::kOutOfRange);
  EXPECT_EQ(writer.put("x", {{-1}, {2}}, values.data()).code(), Code::kOutOfRange);
  EXPECT_EQ(writer.put("x", {{1}, {-2}}, values.data()).code(), Code::kInvalidArgument);
  ASSERT_TRUE(writer.put("x", {{0}, {2}}, values.data()).ok());
  EXPECT_EQ(writer.put("x", {{1}, {2}}, values.data()).code(), Code::kOutOfRange);                // overlaps
  EXPECT_EQ(writer.define({"x", Type::kDouble, {8}, {}, false}).code(), Code::kInvalidArgument);  // it was put
  EXPECT_EQ(writer.define({"x", Type::kFloat, {4}, {}, false}).code(), Code::kInvalidArgument);
  ASSERT_TRUE(writer.put("x", {{2}, {2}}, values.data()).ok());
  ASSERT_TRUE(writer.end_step(soon()).ok());
  auto reader = open_reader("s");
  ASSERT_EQ(reader.begin_step(soon()).value(), StepState::kOk);
  std::vector<double> got(4);
  ASSERT_TRUE(reader.get("x", {{0}, {4}}, got.data(), 32, soon()).ok());
  EXPECT_EQ(got, values);
}

TEST_F(Streams, TwoRanks_ThatDifferOrOverlap_TheLaterHearsAndPutsAgain) {
  auto a = open_writer("s", {.rank = 0, .size = 2}), b = open_writer("s", {.rank = 1, .size = 2});
  ASSERT_TRUE(a.define({"x", Type::kDouble, {4}, {}, false}).ok());
  ASSERT_TRUE(b.define({"x", Type::kDouble, {5}, {}, false}).ok());
  const std::vector<double> values(4, 1.0);
  ASSERT_EQ(a.begin_step(soon()).value(), StepState::kOk);
  ASSERT_EQ(b.begin_step(soon()).value(), StepState::kOk);
  ASSERT_TRUE(a.put("x", {{0}, {2}}, values.data()).ok());
  ASSERT_TRUE(a.end_step(soon()).ok());
  ASSERT_TRUE(b.put("x", {{2}, {2}}, values.data()).ok());
  EXPECT_EQ(b.end_step(soon()).code(), Code::kInvalidArgument);  // another shape
  ASSERT_TRUE(b.define({"x", Type::kDouble, {4}, {}, false}).ok());
  ASSERT_TRUE(b.put("x", {{1}, {2}}, values.data()).ok());
  EXPECT_EQ(b.end_step(soon()).code(), Code::kInvalidArgument);  // overlaps
  ASSERT_TRUE(b.put("x", {{2}, {2}}, values.data()).ok());
  ASSERT_TRUE(b.end_step(soon()).ok());
  auto reader = open_reader("s");
  ASSERT_EQ(reader.begin_step(soon()).value(), StepState::kOk);
  std::vector<double> got(4);
  ASSERT_TRUE(reader.get("x", {{0}, {4}}, got.data(), 32, soon()).ok());
  EXPECT_EQ(got, values);
}

TEST_F(Streams, Open_WhatIsThereAlready_Exists) {
  auto a = open_writer("s", {.rank = 0, .size = 2});
  EXPECT_EQ(try_open("s", {.rank = 0, .size = 2}).code(), Code::kExists);
  EXPECT_EQ(try_open("s", {.rank = 1, .size = 3}).code(), Code::kInvalidArgument);
  EXPECT_EQ(try_open("s", {.rank = 2, .size = 2}).code(), Code::kInvalidArgument);
  EXPECT_EQ(try_open("", {}).code(), Code::kInvalidArgument);
  auto b = open_writer("s", {.rank = 1, .size = 2});
  EXPECT_EQ(try_open("s", {.rank = 0, .size = 2}).code(), Code::kExists);
  auto reader = open_reader("s", {.rank = 0, .size = 2, .group = 7});
  EXPECT_EQ(try_read("s", {.rank = 0, .size = 2, .group = 7}).code(), Code::kExists);
  EXPECT_EQ(try_read("s", {.rank = 1, .size = 3, .group = 7}).code(), Code::kInvalidArgument);
  EXPECT_EQ(try_read("s", {.rank = 1, .size = 3}).code(), Code::kInvalidArgument);
}

TEST_F(Streams, EndStep_ThatTimedOut_IsCalledOnceMoreAndNothingIsPutBetween) {
  auto writer = open_writer("s");
  ASSERT_EQ(writer.begin_step(soon()).value(), StepState::kOk);
  ASSERT_TRUE(writer.define({"x", Type::kDouble, {400'000}, {}, false}).ok());
  const auto values = values_of(0, {{0}, {300'000}});
  ASSERT_TRUE(writer.put("x", {{0}, {300'000}}, values.data()).ok());
  if (const auto ended = writer.end_step(Deadline::now()); !ended.ok()) {
    ASSERT_EQ(ended.code(), Code::kTimedOut);
    EXPECT_EQ(writer.put("x", {{300'000}, {1}}, values.data()).code(), Code::kInvalidArgument);
    const auto again = writer.end_step(soon());
    ASSERT_TRUE(again.ok()) << again.error().message;
  }
  auto reader = open_reader("s");
  for (int i = 0; i < 3; ++i) {  // buffers go round, and none of them before it is free
    ASSERT_EQ(writer.begin_step(soon()).value(), StepState::kOk);
    const auto next = values_of(writer.step(), {{0}, {300'000}});
    ASSERT_TRUE(writer.put("x", {{0}, {300'000}}, next.data()).ok());
    ASSERT_TRUE(writer.end_step(soon()).ok());
  }
  for (std::uint64_t step = 0; step < 4; ++step) {
    ASSERT_EQ(reader.begin_step(soon()).value(), StepState::kOk);
    std::vector<double> got(300'000);
    ASSERT_TRUE(reader.get("x", {{0}, {300'000}}, got.data(), got.size() * sizeof(double), soon()).ok());
    EXPECT_EQ(got, values_of(step, {{0}, {300'000}})) << step;
    ASSERT_TRUE(reader.end_step().ok());
  }
}

TEST_F(Streams, Get_WhatIsNotThere_IsTold) {
  auto writer = open_writer("s");
  double filler = -1;
  std::vector<std::byte> fill(sizeof filler);
  std::memcpy(fill.data(), &filler, sizeof filler);
  ASSERT_TRUE(writer.define({"x", Type::kDouble, {6}, {}, false}).ok());
  ASSERT_TRUE(writer.define({"y", Type::kDouble, {6}, fill, false}).ok());
  const std::vector<double> values(6, 2.0);
  ASSERT_EQ(writer.begin_step(soon()).value(), StepState::kOk);
  ASSERT_TRUE(writer.put("x", {{0}, {3}}, values.data()).ok());
  ASSERT_TRUE(writer.put("y", {{1}, {3}}, values.data()).ok());
  ASSERT_TRUE(writer.end_step(soon()).ok());
  auto reader = open_reader("s");
  std::vector<double> got(6, 9.0);
  EXPECT_EQ(reader.get("x", {{0}, {3}}, got.data(), 48, soon()).code(), Code::kInvalidArgument);  // no step is open
  ASSERT_EQ(reader.begin_step(soon()).value(), StepState::kOk);
  EXPECT_EQ(reader.get("z", {{0}, {3}}, got.data(), 48, soon()).code(), Code::kNotFound);
  EXPECT_EQ(reader.get("x", {{0}, {6}}, got.data(), 48, soon()).code(), Code::kNotFound);
  EXPECT_EQ(reader.get("x", {{0}, {7}}, got.data(), 56, soon()).code(), Code::kOutOfRange);
  EXPECT_EQ(reader.get("x", {{0}, {3}}, got.data(), 16, soon()).code(), Code::kOutOfRange);
  EXPECT_EQ(got, std::vector<double>(6, 9.0));
  ASSERT_TRUE(reader.get("y", {{0}, {6}}, got.data(), 48, soon()).ok());
  EXPECT_EQ(got, (std::vector<double>{-1, 2, 2, 2, -1, -1}));
  EXPECT_EQ(reader.figures("y", {{0}, {6}}, soon()).value().elements, 3u);
}

// --- who comes late, and who goes -------------------------------------------------------------------------------------

TEST_F(Streams, LateReaders_BeginWhereTheySay) {
  auto writer = open_writer("s");
  for (int i = 0; i < 5; ++i) write_step(writer);
  auto oldest = open_reader("s", {.from = From::kOldest}), latest = open_reader("s", {.from = From::kLatest});
  auto third = open_reader("s", {.from = From::kNumber, .first = 3}), next = open_reader("s", {.from = From::kNext});
  auto view = open_reader("s", {.reading = Reading::kView});
  expect_step(oldest, 0);
  expect_step(latest, 4);
  expect_step(third, 3);
  expect_step(view, 4);
  EXPECT_EQ(next.begin_step(Deadline::now()).value(), StepState::kNotYet);
  write_step(writer);
  write_step(writer);
  expect_step(next, 5);
  expect_step(view, 6);
  EXPECT_EQ(view.missed(), 1u);
}

TEST_F(Streams, Constants_ReachWhoComesLate) {
  auto writer = open_writer("s");
  ASSERT_TRUE(writer.define({"grid", Type::kDouble, {3}, {}, true}).ok());
  ASSERT_EQ(writer.begin_step(soon()).value(), StepState::kOk);
  const std::vector<double> grid{1, 2, 3};
  ASSERT_TRUE(writer.put("grid", {{0}, {3}}, grid.data()).ok());
  ASSERT_TRUE(writer.end_step(soon()).ok());
  const std::int64_t large = 4 << 20;  // more than is kept for who comes late
  for (int i = 0; i < 4; ++i) write_step(writer, large);
  auto reader = open_reader("s");
  ASSERT_EQ(reader.begin_step(soon()).value(), StepState::kOk);
  EXPECT_GT(reader.step(), 0u);
  std::vector<double> got(3);
  ASSERT_TRUE(reader.get("grid", {{0}, {3}}, got.data(), 24, soon()).ok());
  EXPECT_EQ(got, grid);
}

TEST_F(Streams, NamedSubscription_ResumesWithOtherRanks) {
  auto writer = open_writer("s");
  {
    auto reader = open_reader("s", {.subscription = "edge"});
    for (int i = 0; i < 4; ++i) write_step(writer);
    expect_step(reader, 0);
    expect_step(reader, 1);
  }
  for (int i = 0; i < 2; ++i) write_step(writer);
  auto a = open_reader("s", {.rank = 0, .size = 2, .subscription = "edge"});
  auto b = open_reader("s", {.rank = 1, .size = 2, .subscription = "edge"});
  for (std::uint64_t step = 2; step < 6; ++step) {
    expect_step(a, step);
    expect_step(b, step);
  }
  ASSERT_TRUE(writer.close(soon()).ok());
  EXPECT_EQ(a.begin_step(soon()).value(), StepState::kEnd);
  EXPECT_EQ(b.begin_step(soon()).value(), StepState::kEnd);
}

TEST_F(Streams, Append_GoesOnAfterTheLastCompleteStep_WithOtherWriters) {
  auto reader_before = std::optional<Reader>();
  {
    auto writer = open_writer("s");
    reader_before = open_reader("s", {.subscription = "all"});
    for (int i = 0; i < 3; ++i) write_step(writer);
    ASSERT_TRUE(writer.close(soon()).ok());
  }
  auto a = open_writer("s", {.rank = 0, .size = 2, .append = true});
  auto b = open_writer("s", {.rank = 1, .size = 2, .append = true});
  EXPECT_EQ(a.step(), 3u);
  EXPECT_EQ(b.step(), 3u);
  for (auto *writer : {&a, &b}) {
    ASSERT_EQ(writer->begin_step(soon()).value(), StepState::kOk);
    ASSERT_TRUE(writer->define({"x", Type::kDouble, {4}, {}, false}).ok());
    const Box half{{writer == &a ? 0 : 2}, {2}};
    ASSERT_TRUE(writer->put("x", half, values_of(3, half).data()).ok());
    ASSERT_TRUE(writer->end_step(soon()).ok());
  }
  for (std::uint64_t step = 0; step < 4; ++step) expect_step(*reader_before, step);
}

TEST_F(Streams, AwaitReaders_TheFirstStepIsNotYet) {
  auto writer = open_writer("s", {.await_readers = 1});
  EXPECT_EQ(writer.begin_step(Deadline::in(milliseconds(50))).value(), StepState::kNotYet);
  auto reader = open_reader("s");
  write_step(writer);
  expect_step(reader, 0);
}

// --- bounds -----------------------------------------------------------------------------------------------------------

class SmallMemory : public Streams {
 protected:
  static ServerOptions options() {
    ServerOptions options;
    options.memory_bytes = 4 << 20;
    options.keep_bytes = 1 << 20;
    options.reader_timeout = milliseconds(400);
    return options;
  }
  SmallMemory() : Streams(options()) {}
  static constexpr std::int64_t kMegabyte = 1 << 17;  ///< of doubles
};

TEST_F(SmallMemory, Full_BeginStepIsBusyAndNamesWhoHoldsIt) {
  auto writer = open_writer("s");
  auto reader = open_reader("s", {.subscription = "slow"});
  for (int i = 0; i < 4; ++i) write_step(writer, kMegabyte);
  const auto full = writer.begin_step(Deadline::in(milliseconds(100)));
  ASSERT_EQ(full.code(), Code::kBusy);
  EXPECT_NE(full.error().message.find("slow"), std::string::npos) << full.error().message;
  expect_step(reader, 0, kMegabyte);
  write_step(writer, kMegabyte);
  for (std::uint64_t step = 1; step < 5; ++step) expect_step(reader, step, kMegabyte);
}

TEST_F(SmallMemory, ViewsHoldNothing) {
  auto writer = open_writer("s");
  auto view = open_reader("s", {.reading = Reading::kView});
  for (int i = 0; i < 20; ++i) write_step(writer, kMegabyte);
  expect_step(view, 19, kMegabyte);
  EXPECT_EQ(view.missed(), 19u);
}

class SmallMemories : public Streams {
 protected:
  static ServerOptions options() {
    ServerOptions options;
    options.memory_bytes = 4 << 20;
    return options;
  }
  SmallMemories() : Streams(options(), 2) {}
};

TEST_F(SmallMemories, Full_StreamsThatNobodyWritesOrReadsAnyMoreMakeRoom) {
  constexpr std::int64_t kMegabyte = 1 << 17;  // of doubles
  auto last = open_writer("read");
  write_step(last);
  auto reader = open_reader("read", {.subscription = "late"});
  ASSERT_TRUE(last.close(soon()).ok());
  for (int i = 0; i < 12; ++i) {
    std::vector<Writer> writers;
    for (int rank = 0; rank < 2; ++rank)  // each at another server
      writers.push_back(open_writer("s" + std::to_string(i), {.rank = rank, .size = 2}));
    for (int rank = 0; rank < 2; ++rank) {
      auto &writer = writers[static_cast<std::size_t>(rank)];
      ASSERT_EQ(writer.begin_step(soon()).value(), StepState::kOk);
      ASSERT_TRUE(writer.define({"x", Type::kDouble, {2 * kMegabyte}, {}, false}).ok());
      const Box box{{rank * kMegabyte}, {kMegabyte}};
      ASSERT_TRUE(writer.put("x", box, values_of(0, box).data()).ok());
    }
    for (auto &writer : writers) ASSERT_TRUE(writer.end_step(soon()).ok());
    for (auto &writer : writers) ASSERT_TRUE(writer.close(soon()).ok());
  }
  expect_step(reader, 0);
}

// --- servers that do not answer ---------------------------------------------------------------------------------------

/// Takes connections, and says nothing.
class Silence {
 public:
  Silence() {
    sockaddr_in address{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr *>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr *>(&address), &size), 0);
    at_ = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Silence() {
    if (connection_ >= 0) ::close(connection_);
    ::close(socket_);
  }
  Silence(const Silence &) = delete;
  std::string at() const { return at_; }
  void await_caller() { connection_ = ::accept(socket_, nullptr, nullptr); }

 private:
  const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int connection_ = -1;
  std::string at_;
};

TEST(StreamsPlace, Connect_WhileAnotherThreadWaitsForTheServer_EndsAtItsOwnDeadline) {
  Silence silence;
  std::atomic<bool> is_first_over = false;
  WriterOptions options;
  options.at = silence.at();
  std::thread first([&] {
    EXPECT_EQ(Writer::open("s", options, Deadline::in(seconds(3))).code(), Code::kTimedOut);
    is_first_over = true;
  });
  silence.await_caller();
  EXPECT_EQ(Writer::open("s", options, Deadline::in(milliseconds(50))).code(), Code::kTimedOut);
  EXPECT_FALSE(is_first_over);
  first.join();
}

// --- the shared space -------------------------------------------------------------------------------------------------

TEST_F(Streams, Space_AGetWaitsUntilItsBoxIsCovered) {
  auto space = *api::Space::open(servers_.at(), soon());
  const std::vector<double> left{1, 2}, right{3, 4};
  ASSERT_TRUE(space.put("edge", 1, Type::kDouble, {{0}, {2}}, left.data(), soon()).ok());
  EXPECT_EQ(space.put("edge", 1, Type::kDouble, {{1}, {2}}, left.data(), soon()).code(), Code::kExists);
  EXPECT_EQ(space.put("edge", 1, Type::kFloat, {{4}, {2}}, left.data(), soon()).code(), Code::kInvalidArgument);
  std::vector<double> got(4);
  EXPECT_EQ(space.get("edge", 1, Type::kDouble, {{0}, {4}}, got.data(), 32, Deadline::in(milliseconds(50))).code(),
            Code::kTimedOut);
  std::thread later([&] {
    auto other = *api::Space::open(servers_.at(), soon());
    (void)other.put("edge", 1, Type::kDouble, {{2}, {2}}, right.data(), soon());
  });
  ASSERT_TRUE(space.get("edge", 1, Type::kDouble, {{0}, {4}}, got.data(), 32, soon()).ok());
  later.join();
  EXPECT_EQ(got, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(space.newest("edge", soon()).value(), 1u);
  for (std::uint64_t version = 2; version < 8; ++version)
    ASSERT_TRUE(space.put("edge", version, Type::kDouble, {{0}, {2}}, left.data(), soon()).ok());
  EXPECT_EQ(space.get("edge", 1, Type::kDouble, {{0}, {2}}, got.data(), 32, soon()).code(), Code::kNotFound);
}

}  // namespace
}  // namespace streams
