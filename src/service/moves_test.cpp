// SPDX-License-Identifier: BSD-3-Clause
#include <service/moves.hpp>

#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <atomic>
#include <optional>

namespace nessie::service {
namespace {

using namespace std::chrono_literals;

constexpr nssi::PeerId kSomebody{7}, kSomebodyElse{8};

class MovesTest : public ::testing::Test {
 protected:
  MovesTest()
      : server_(nssi::testing::options_for("inproc", true), [this](nssi::Runtime &runtime) {
          moves_.emplace(runtime, MovesOptions{20ms, 80ms, [this](nssi::PeerId caller) { given_up_ = caller; },
                                               [this](nssi::PeerId caller) { return excused_ == caller; }});
        }) {}
  std::optional<Moves> moves_;
  std::atomic<nssi::PeerId> given_up_{nssi::PeerId{}}, excused_{nssi::PeerId{}};
  nssi::testing::ServiceThread server_;
};

TEST_F(MovesTest, ATransfer_IsThereUntilItEnds) {
  {
    const Moves::Move one(*moves_, kSomebody), two(*moves_, kSomebody);
    EXPECT_EQ(moves_->count(), 2u);
  }
  EXPECT_EQ(moves_->count(), 0u);
}

TEST_F(MovesTest, ATransferThatTakesLong_MakesItsCallerSlow_AndNoOther) {
  const Moves::Move slow(*moves_, kSomebody);
  EXPECT_TRUE(nssi::testing::eventually([&] { return moves_->is_slow(kSomebody); }));
  EXPECT_FALSE(moves_->is_slow(kSomebodyElse));
}

TEST_F(MovesTest, ACallerThatMovesNothing_IsGivenUp) {
  const Moves::Move stuck(*moves_, kSomebody);
  EXPECT_TRUE(nssi::testing::eventually([&] { return given_up_.load() == kSomebody; }));
}

TEST_F(MovesTest, OneThatHasAReason_IsGivenUpWhenItHasNoneAnyMore) {
  excused_ = kSomebody;
  const Moves::Move stuck(*moves_, kSomebody);
  {
    const Moves::Move other(*moves_, kSomebodyElse);
    EXPECT_TRUE(nssi::testing::eventually([&] { return given_up_.load() == kSomebodyElse; }));
  }
  excused_ = nssi::PeerId{};
  EXPECT_TRUE(nssi::testing::eventually([&] { return given_up_.load() == kSomebody; }));
}

TEST_F(MovesTest, WhereNothingMoved_LaterTransfersAreWatchedAgain) {
  for (const auto caller : {kSomebody, kSomebodyElse}) {
    const Moves::Move stuck(*moves_, caller);
    EXPECT_TRUE(nssi::testing::eventually([&] { return given_up_.load() == caller; }));
  }
}

}  // namespace
}  // namespace nessie::service
