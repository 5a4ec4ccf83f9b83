// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/server/lanes.hpp>

#include <gtest/gtest.h>

#include <nssi/testing.hpp>

#include <optional>

namespace transfer {
namespace {

using nessie::Code;
using nessie::Deadline;

class TransferLanes : public ::testing::Test {
 protected:
  void in_fiber(std::function<void()> body) {
    runtime_->spawn([this, body = std::move(body)] {
      body();
      runtime_->stop();
    });
    runtime_->run();
  }
  nessie::Result<Lanes::Lease> take() { return lanes_.take(*runtime_, Deadline::in(std::chrono::seconds(20))); }

  Lanes lanes_{4, 2};
  std::unique_ptr<nssi::Runtime> runtime_ = nssi::testing::open_runtime(nssi::testing::options_for("inproc", true));
};

TEST_F(TransferLanes, PiecesOfALane_DoNotOverlap) {
  in_fiber([&] {
    auto lane = take();
    ASSERT_TRUE(lane.ok());
    EXPECT_EQ(lane->piece(0).size(), 4u);
    EXPECT_EQ(lane->piece(0).data(), lane->piece(2).data());
    EXPECT_TRUE(lane->piece(1).data() >= lane->piece(0).data() + 4 ||
                lane->piece(0).data() >= lane->piece(1).data() + 4);
  });
}

TEST_F(TransferLanes, LaneThatWasGivenBack_IsUsedAgain) {
  in_fiber([&] {
    const auto *memory = take()->piece(0).data();
    EXPECT_EQ(take()->piece(0).data(), memory);
  });
}

TEST_F(TransferLanes, NoneFree_TimesOutAndTakesNothing) {
  in_fiber([&] {
    auto first = take(), second = take();
    EXPECT_EQ(lanes_.take(*runtime_, Deadline::in(std::chrono::milliseconds(1))).code(), Code::kTimedOut);
    const auto *memory = second->piece(0).data();
    { const auto given_back = *std::move(second); }
    EXPECT_EQ(take()->piece(0).data(), memory);
  });
}

TEST_F(TransferLanes, WhoWaits_IsServedInOrderOfArrival) {
  std::vector<int> order;
  in_fiber([&] {
    std::optional<Lanes::Lease> first(*take()), second(*take());
    for (int i = 0; i < 3; ++i)
      runtime_->spawn([&, i] {
        auto lane = take();
        if (lane.ok()) order.push_back(i);
      });
    runtime_->sleep_until(Deadline::in(std::chrono::milliseconds(1)));
    EXPECT_TRUE(order.empty());
    first.reset();
    second.reset();
    for (auto end = Deadline::in(std::chrono::seconds(20)); order.size() < 3 && !end.passed();)
      runtime_->sleep_until(Deadline::in(std::chrono::milliseconds(1)));
  });
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

}  // namespace
}  // namespace transfer
