// SPDX-License-Identifier: BSD-3-Clause
// What does not fit into memory, and what outlives the server.
#include <services/streams/testing.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace streams {
namespace {

using namespace testing;
using api::Durability;
using api::Reader;
using api::StepState;
using api::Type;
using api::Writer;
using nessie::Code;

class Logged : public ::testing::Test {
 protected:
  Logged() {
    std::string folder = ::testing::TempDir() + "streams-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    start();
  }
  ~Logged() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  static constexpr std::int64_t kMegabyte = 1 << 17;  ///< of doubles

  ServerOptions options() const {
    ServerOptions options;
    options.memory_bytes = 4 << 20;
    options.keep_bytes = 0;
    options.log_path = folder_ + "/log";
    options.sinks = sinks_;
    return options;
  }
  void start() { server_ = std::make_unique<ServerThread>(options(), folder_ + "/contact"); }
  void restart() {
    server_.reset();
    start();
  }
  std::string at() const { return "file:" + folder_ + "/contact"; }
  Writer open_writer(Durability durability, bool append = false) {
    auto writer = Writer::open("s", {.at = at(), .durability = durability, .append = append}, soon());
    EXPECT_TRUE(writer.ok()) << writer.error().message;
    return *std::move(writer);
  }
  Reader open_reader(const std::string &subscription) {
    auto reader = Reader::open("s", {.at = at(), .subscription = subscription}, soon());
    EXPECT_TRUE(reader.ok()) << reader.error().message;
    return *std::move(reader);
  }
  static void write_step(Writer &writer, std::int64_t elements) {
    auto begun = writer.begin_step(soon());
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    ASSERT_TRUE(writer.define({"x", Type::kDouble, {elements}, {}, false}).ok());
    const auto values = values_of(writer.step(), {{0}, {elements}});
    ASSERT_TRUE(writer.put("x", {{0}, {elements}}, values.data()).ok());
    auto ended = writer.end_step(soon());
    ASSERT_TRUE(ended.ok()) << ended.error().message;
  }
  static void expect_step(Reader &reader, std::uint64_t number, std::int64_t elements) {
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

  std::string folder_;
  std::vector<SinkRule> sinks_;
  std::unique_ptr<ServerThread> server_;
};

TEST_F(Logged, WhatMemoryHasNoRoomForGoesToTheLog_AndComesBack) {
  auto writer = open_writer(Durability::kMemory);
  auto reader = open_reader("slow");
  for (int i = 0; i < 24; ++i) write_step(writer, kMegabyte);
  for (std::uint64_t step = 0; step < 24; ++step) expect_step(reader, step, kMegabyte);
}

TEST_F(Logged, AServerThatIsStartedAnewHasAllThatWasAcknowledged) {
  for (const std::int64_t elements : {std::int64_t{3}, kMegabyte}) {
    auto writer = open_writer(Durability::kLogged);
    auto reader = open_reader("all");
    for (int i = 0; i < 4; ++i) write_step(writer, elements);
    expect_step(reader, 0, elements);
    restart();
    expect_step(reader, 1, elements);
    write_step(writer, elements);
    restart();
    for (std::uint64_t step = 2; step < 5; ++step) expect_step(reader, step, elements);
    ASSERT_TRUE(writer.close(soon()).ok());
    EXPECT_EQ(reader.begin_step(soon()).value(), StepState::kEnd);
    ASSERT_TRUE(reader.unsubscribe(soon()).ok());
  }
}

TEST_F(Logged, AServerThatIsStartedAnewKnowsWhoHasCome_AndWhoHasClosed) {
  std::vector<Writer> writers;
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == 3) restart();
    auto writer = Writer::open("s", {.rank = rank, .size = 4, .at = at(), .durability = Durability::kLogged}, soon());
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    writers.push_back(*std::move(writer));
  }
  auto reader = open_reader("all");
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    if (rank == 2) restart();
    auto &writer = writers[static_cast<std::size_t>(rank)];
    ASSERT_EQ(writer.begin_step(soon()).value(), StepState::kOk);
    ASSERT_TRUE(writer.define({"x", Type::kDouble, {4}, {}, false}).ok());
    ASSERT_TRUE(writer.put("x", {{rank}, {1}}, values_of(0, {{rank}, {1}}).data()).ok());
    ASSERT_TRUE(writer.end_step(soon()).ok());
    ASSERT_TRUE(rank >= 2 || writer.close(soon()).ok());
  }
  for (std::size_t rank = 2; rank < 4; ++rank) ASSERT_TRUE(writers[rank].close(soon()).ok());
  restart();
  expect_step(reader, 0, 4);
  EXPECT_EQ(reader.begin_step(soon()).value(), StepState::kEnd);
}

TEST_F(Logged, LargeArraysOfAnyShapeArePutPieceByPiece_AndOutliveTheServer) {
  const std::vector<std::vector<std::int64_t>> shapes{{600'000}, {3, 300'000}, {7, 5, 20'000}, {2, 2, 262'000}};
  auto writer = open_writer(Durability::kLogged);
  auto reader = open_reader("all");
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(writer.begin_step(soon()).value(), StepState::kOk);
    for (std::size_t v = 0; v < shapes.size(); ++v) {
      const api::Box all{std::vector<std::int64_t>(shapes[v].size(), 0), shapes[v]};
      ASSERT_TRUE(writer.define({"x" + std::to_string(v), Type::kDouble, shapes[v], {}, false}).ok());
      const auto values = values_of(writer.step(), all);
      auto put = writer.put("x" + std::to_string(v), all, values.data());
      ASSERT_TRUE(put.ok()) << put.error().message;
    }
    auto ended = writer.end_step(soon());
    ASSERT_TRUE(ended.ok()) << ended.error().message;
    if (i == 0) restart();
  }
  for (std::uint64_t step = 0; step < 2; ++step) {
    ASSERT_EQ(reader.begin_step(soon()).value(), StepState::kOk);
    for (std::size_t v = 0; v < shapes.size(); ++v) {
      const api::Box all{std::vector<std::int64_t>(shapes[v].size(), 0), shapes[v]};
      const auto expected = values_of(step, all);
      std::vector<double> values(expected.size());
      auto got = reader.get("x" + std::to_string(v), all, values.data(), values.size() * sizeof(double), soon());
      ASSERT_TRUE(got.ok()) << got.error().message << " x" << v;
      EXPECT_EQ(values, expected) << "x" << v;
    }
    ASSERT_TRUE(reader.end_step().ok());
  }
}

TEST_F(Logged, AServerThatEndsLeavesALogAlone_ThatItHasNotReadOrThatIsAnothers) {
  auto writer = open_writer(Durability::kLogged);
  auto reader = open_reader("all");
  write_step(writer, 10);
  { const ServerThread another(options()); }
  server_.reset();
  { const ServerThread soon_gone(options()); }  // perhaps before it has read it
  start();
  expect_step(reader, 0, 10);
  write_step(writer, 10);
  expect_step(reader, 1, 10);
}

TEST_F(Logged, ANamedSubscriptionResumesAtAServerThatIsStartedAnew) {
  {
    auto writer = open_writer(Durability::kLogged);
    auto reader = open_reader("all");
    for (int i = 0; i < 6; ++i) write_step(writer, 10);
    for (std::uint64_t step = 0; step < 3; ++step) expect_step(reader, step, 10);
    ASSERT_TRUE(reader.close(soon()).ok());
    ASSERT_TRUE(writer.close(soon()).ok());
  }
  restart();
  auto reader = open_reader("all");
  for (std::uint64_t step = 3; step < 6; ++step) expect_step(reader, step, 10);
  auto writer = open_writer(Durability::kLogged, true);
  EXPECT_EQ(writer.step(), 6u);
  write_step(writer, 10);
  expect_step(reader, 6, 10);
}

TEST_F(Logged, ANamedSubscriptionThatHasReadNothingYetHoldsAllStepsAtAServerThatIsStartedAnew) {
  auto writer = open_writer(Durability::kLogged);
  ASSERT_TRUE(open_reader("all").close(soon()).ok());
  for (int i = 0; i < 3; ++i) write_step(writer, kMegabyte);
  restart();
  for (int i = 0; i < 3; ++i) write_step(writer, kMegabyte);
  auto reader = open_reader("all");
  for (std::uint64_t step = 0; step < 6; ++step) expect_step(reader, step, kMegabyte);
}

TEST_F(Logged, WhatWasInMemoryOnlyIsLostWithTheServer_AndWhoHadItIsTold) {
  auto writer = open_writer(Durability::kMemory);
  auto reader = open_reader("all");
  for (int i = 0; i < 3; ++i) write_step(writer, 10);
  expect_step(reader, 0, 10);
  restart();
  auto begun = writer.begin_step(soon());
  const auto ended = begun.ok() ? writer.end_step(soon()).code() : begun.code();
  EXPECT_EQ(ended, Code::kPeerLost);
  auto next = reader.begin_step(soon());
  if (next.ok()) {  // it had been told of one more
    ASSERT_TRUE(reader.end_step().ok());
    next = reader.begin_step(soon());
  }
  EXPECT_EQ(next.code(), Code::kPeerLost);
}

TEST_F(Logged, ARuleOfTheServersOwnThatThereIsNoMoreHoldsNothing) {
  sinks_ = *parse_sink_rules("record:s=/nowhere/");
  restart();
  auto writer = open_writer(Durability::kLogged);
  for (int step = 0; step < 3; ++step) write_step(writer, 100);
  ASSERT_TRUE(writer.close(soon()).ok());
  (void)open_reader("archive").close(soon());
  const auto readers = [&] { return api::list(at(), soon())->at(0).readers.size(); };
  restart();
  EXPECT_EQ(readers(), 2U);
  sinks_.clear();
  for (int start = 0; start < 2; ++start) {
    restart();
    EXPECT_EQ(readers(), 1U);
  }
}

}  // namespace
}  // namespace streams
