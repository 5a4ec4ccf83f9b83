// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/line.hpp>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>

namespace staging {
namespace {

using nessie::Deadline;

constexpr nssi::PeerId kOne{1}, kTwo{2};

/// A line, and fibers that note when they pass.
class LineTest : public ::testing::Test {
 protected:
  LineTest() {
    nssi::RuntimeOptions options;
    options.endpoint.transports = {"inproc"};
    runtime_ = std::move(*nssi::Runtime::open(options));
    line_ = std::make_unique<Line>(*runtime_);
  }
  /// Runs `work` in a fiber, and until it and what it has begun have ended.
  void run(std::function<void()> work) {
    begin(std::move(work));
    runtime_->spawn([this] {
      while (running_ > 0) runtime_->sleep_until(Deadline::in(std::chrono::milliseconds(1)));
      runtime_->stop();
    });
    runtime_->run();
  }
  void begin(std::function<void()> work) {
    ++running_;
    runtime_->spawn([this, work = std::move(work)] {
      work();
      --running_;
    });
  }
  /// Others go on: by default, until they wait.
  void let_others_go_on(int turns = 5) {
    for (; turns > 0; --turns) {
      nssi::Event next(*runtime_);
      runtime_->post([&] { next.set(); });
      (void)next.wait();
    }
  }
  void write(const std::string &name, nssi::PeerId caller, std::int64_t sent_ns) {
    begin([=, this] {
      Line::Place place(*line_, caller, sent_ns);
      place.await_turn();
      passed_ += name;
      let_others_go_on(1);
      passed_ += name;
    });
    let_others_go_on();
  }
  void look(const std::string &name) {
    begin([=, this] {
      line_->await_arrived();
      passed_ += name;
    });
    let_others_go_on();
  }

  std::unique_ptr<nssi::Runtime> runtime_;
  std::unique_ptr<Line> line_;
  int running_ = 0;
  std::string passed_;
};

TEST_F(LineTest, WhoWasSentFirstGoesFirst_OneAtATime) {
  run([&] {
    auto first = std::make_unique<Line::Place>(*line_, kOne, 10);
    write("c", kTwo, 30);
    write("b", kOne, 20);
    EXPECT_EQ(passed_, "");
    first.reset();
  });
  EXPECT_EQ(passed_, "bbcc");
}

TEST_F(LineTest, WhoWasSentAtTheSameInstantGoesInOrderOfArrival) {
  run([&] {
    auto first = std::make_unique<Line::Place>(*line_, kOne, 10);
    write("a", kTwo, 20);
    write("b", kOne, 20);
    first.reset();
  });
  EXPECT_EQ(passed_, "aabb");
}

TEST_F(LineTest, WhatHasArrivedKeepsItsPlaceUntilItIsBegun) {
  run([&] {
    line_->note_arrival(kOne, 10);
    EXPECT_FALSE(line_->is_empty());
    write("b", kTwo, 20);
    EXPECT_EQ(passed_, "");
    write("a", kOne, 10);
  });
  EXPECT_EQ(passed_, "aabb");
  EXPECT_TRUE(line_->is_empty());
}

TEST_F(LineTest, WhoIsHeldUpLetsOthersPass_AndNotTwoHaveTheirTurn) {
  run([&] {
    bool is_held_up = true;
    Line::Place held(*line_, kOne, 10, [&] { return is_held_up; });
    write("b", kTwo, 20);
    EXPECT_EQ(passed_, "bb");
    begin([&] {
      Line::Place place(*line_, kTwo, 30);
      place.await_turn();
      passed_ += "c";
      is_held_up = false;
      let_others_go_on();
      passed_ += "c";
    });
    let_others_go_on();
    held.await_turn();
    passed_ += "a";
  });
  EXPECT_EQ(passed_, "bbcca");
}

TEST_F(LineTest, WhoLooksWaitsForWhatItsSenderTakesForDone) {
  run([&] {
    look("1");
    EXPECT_EQ(passed_, "1");
    line_->note_arrival(kOne, 10);
    look("2");
    EXPECT_EQ(passed_, "1");
    write("a", kOne, 10);
  });
  EXPECT_EQ(passed_, "1aa2");
}

TEST_F(LineTest, WhoLooksDoesNotWaitForWhoStillWaitsItself_NorForWhatIsSentLater) {
  run([&] {
    const Line::Place stopped(*line_, kOne, 10);
    line_->note_arrival(kTwo, INT64_MAX);
    look("1");
    EXPECT_EQ(passed_, "1");
    const Line::Place begun(*line_, kTwo, INT64_MAX);
  });
}

TEST_F(LineTest, WhatIsNeverBegunIsGivenUp) {
  run([&] {
    line_->note_arrival(kOne, 10);
    line_->note_arrival(kOne, 11);
    look("1");
    EXPECT_EQ(passed_, "");
    write("b", kTwo, 20);
  });
  EXPECT_EQ(passed_.size(), 3u);
  EXPECT_TRUE(line_->is_empty());
}

}  // namespace
}  // namespace staging
