// SPDX-License-Identifier: BSD-3-Clause
// One of several servers is started anew, without what it had in memory.
#include <services/streams/testing.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace streams {
namespace {

using namespace testing;
using api::Reader;
using api::StepState;
using api::Type;
using api::Writer;
using nessie::Code;

/// Rank 0's data go to the first server, rank 1's to the second one.
class SecondServer : public ::testing::Test {
 protected:
  SecondServer() {
    std::string folder = ::testing::TempDir() + "streams-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    ServerOptions options;
    options.servers = 2;
    first_ = std::make_unique<ServerThread>(options, folder_ + "/contact");
    start();
    for (int rank = 0; rank < 2; ++rank) {
      auto writer = Writer::open("s", {.rank = rank, .size = 2, .at = at()}, soon());
      EXPECT_TRUE(writer.ok()) << writer.error().message;
      writers_.push_back(*std::move(writer));
      EXPECT_TRUE(writers_.back().define({"x", Type::kDouble, {4}, {}, false}).ok());
      EXPECT_TRUE(writers_.back().define({"grid", Type::kDouble, {1}, {}, true}).ok());
    }
    auto reader = Reader::open("s", {.at = at(), .subscription = "all"}, soon());
    EXPECT_TRUE(reader.ok()) << reader.error().message;
    reader_.emplace(*std::move(reader));
  }
  ~SecondServer() override {
    reader_.reset();
    writers_.clear();
    second_.reset();
    first_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string at() const { return "file:" + folder_ + "/contact"; }
  void start() {
    ServerOptions options;
    options.index = 1;
    options.servers = 2;
    options.first = at();
    second_ = std::make_unique<ServerThread>(options);
  }
  void restart() {
    second_.reset();
    start();
  }
  nessie::Status write_step(int rank) {
    auto &writer = writers_[static_cast<std::size_t>(rank)];
    if (auto begun = writer.begin_step(soon()); !begun.ok()) return begun.error();
    const api::Box box{{2 * rank}, {2}};
    const double grid = 42;
    EXPECT_TRUE(writer.put("x", box, values_of(writer.step(), box).data()).ok());
    if (rank == 0 && writer.step() == 0) { EXPECT_TRUE(writer.put("grid", {{0}, {1}}, &grid).ok()); }
    return writer.end_step(soon());
  }
  void write_both() {
    for (int rank = 0; rank < 2; ++rank) {
      const auto status = write_step(rank);
      ASSERT_TRUE(status.ok()) << status.error().message;
    }
  }
  /// What rank 1 is told at its next step, or the one after: it may have had room for one already. Then both go on
  /// together.
  std::string hear_loss() {
    auto told = write_step(1);
    if (told.ok()) told = write_step(1);
    EXPECT_EQ(told.code(), Code::kPeerLost);
    for (int rank : {0, 1})
      while (writers_[static_cast<std::size_t>(rank)].step() < writers_[static_cast<std::size_t>(1 - rank)].step())
        EXPECT_TRUE(write_step(rank).ok());
    return told.ok() ? std::string() : told.error().message;
  }
  void expect_step(std::uint64_t number) {
    auto begun = reader_->begin_step(soon());
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    ASSERT_EQ(*begun, StepState::kOk);
    ASSERT_EQ(reader_->step(), number);
    std::vector<double> values(4);
    ASSERT_TRUE(reader_->get("x", {{0}, {4}}, values.data(), 32, soon()).ok());
    EXPECT_EQ(values, values_of(number, {{0}, {4}}));
    double grid = 0;
    ASSERT_TRUE(reader_->get("grid", {{0}, {1}}, &grid, 8, soon()).ok());
    EXPECT_EQ(grid, 42);
    ASSERT_TRUE(reader_->end_step().ok());
  }
  /// Once; a step that it was told of before is gone when it wants it.
  void expect_loss(const std::string &what) {
    auto begun = reader_->begin_step(soon());
    if (begun.ok()) {
      std::vector<double> values(4);
      EXPECT_FALSE(reader_->get("x", {{0}, {4}}, values.data(), 32, soon()).ok());
      ASSERT_TRUE(reader_->end_step().ok());
      begun = reader_->begin_step(soon());
    }
    ASSERT_EQ(begun.code(), Code::kNotFound);
    EXPECT_NE(begun.error().message.find(what), std::string::npos) << begun.error().message;
  }

  std::string folder_;
  std::unique_ptr<ServerThread> first_, second_;
  std::vector<Writer> writers_;
  std::optional<Reader> reader_;
};

TEST_F(SecondServer, StartedAnew_ItsWritersHearOnceWhichStepsAreLost_AndAllGoOn) {
  for (int step = 0; step < 3; ++step) write_both();
  expect_step(0);
  restart();
  const auto told = hear_loss();
  EXPECT_NE(told.find("steps 0 to 2"), std::string::npos) << told;
  write_both();
  expect_loss("steps 0 to 2");
  expect_step(3);
  EXPECT_EQ(writers_[0].close(soon()).code(), Code::kOk);
  EXPECT_EQ(writers_[1].close(soon()).code(), Code::kOk);
}

TEST_F(SecondServer, StartedAnewWithPartOfAStepThatWasNotComplete_TheStepIsLostAndNobodyWaitsForIt) {
  write_both();
  expect_step(0);
  ASSERT_TRUE(write_step(1).ok());
  restart();
  const auto told = hear_loss();
  EXPECT_NE(told.find("steps 0 to 1"), std::string::npos) << told;
  write_both();
  expect_loss("step 1");
  expect_step(2);
}

TEST_F(SecondServer, StartedAnewWhileAStepIsOpen_TheStepIsWhole) {
  auto &writer = writers_[1];
  ASSERT_TRUE(writer.begin_step(soon()).ok());
  const api::Box box{{2}, {2}};
  ASSERT_TRUE(writer.put("x", box, values_of(0, box).data()).ok());
  restart();
  ASSERT_TRUE(writer.end_step(soon()).ok());
  ASSERT_TRUE(write_step(0).ok());
  expect_step(0);
}

TEST_F(SecondServer, StartedAnewAfterAWriterHasClosed_WhatItHadEndedIsLostAndTheOtherGoesOn) {
  write_both();
  expect_step(0);
  ASSERT_TRUE(write_step(1).ok());
  ASSERT_TRUE(writers_[1].close(soon()).ok());
  restart();
  ASSERT_TRUE(write_step(0).ok());
  ASSERT_TRUE(writers_[0].close(soon()).ok());
  expect_loss("1 that it had in memory");
  EXPECT_EQ(reader_->begin_step(soon()).value(), StepState::kEnd);
}

}  // namespace
}  // namespace streams
