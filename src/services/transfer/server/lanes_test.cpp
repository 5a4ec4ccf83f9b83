// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/server/lanes.hpp>

#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

namespace transfer {
namespace {

using nessie::Deadline;

constexpr nssi::OpCode kAnything = 1000;

/// What is done to lanes is done by the handlers of a service.
class TransferLanes : public ::testing::Test {
 protected:
  using Body = std::function<void(nssi::Request &)>;
  void SetUp() override {
    server_ = std::make_unique<nssi::testing::ServiceThread>(
        nssi::testing::options_for("inproc", true), [this](nssi::Runtime &runtime) {
          runtime_ = &runtime;
          (void)runtime.add_operation({nssi::testing::kInterface, 0, kAnything, "anything", nssi::HandlerKind::kFiber,
                                       [this](nssi::Request &request) {
                                         next_body()(request);
                                         (void)request.reply();
                                       }});
        });
    client_ = nssi::testing::open_runtime(nssi::testing::options_for("inproc", false));
    peer_ = *client_->connect(server_->runtime->url(), Deadline::in(std::chrono::seconds(20)));
  }
  void TearDown() override { client_.reset(), server_.reset(); }
  nssi::Call start(Body body, Deadline deadline = Deadline::in(std::chrono::seconds(20))) {
    {
      const std::lock_guard lock(mutex_);
      bodies_.push_back(std::move(body));
    }
    nssi::CallOptions options;
    options.deadline = deadline;
    return client_->call(nssi::testing::at(peer_), kAnything, {}, options);
  }
  void in_handler(Body body) {
    const auto status = start(std::move(body)).wait();
    EXPECT_TRUE(status.ok()) << status.error().to_string();
  }
  nessie::Result<Lanes::Lease> take(nssi::Request &request) { return lanes_.take(*runtime_, request); }

  Lanes lanes_{4, 2};
  nssi::Runtime *runtime_ = nullptr;

 private:
  Body next_body() {
    const std::lock_guard lock(mutex_);
    auto body = std::move(bodies_.front());
    bodies_.pop_front();
    return body;
  }
  std::mutex mutex_;
  std::deque<Body> bodies_;  ///< requests of one caller begin in their order
  std::unique_ptr<nssi::testing::ServiceThread> server_;
  std::unique_ptr<nssi::Runtime> client_;
  nssi::PeerId peer_;
};

TEST_F(TransferLanes, PiecesOfALane_DoNotOverlap) {
  in_handler([&](nssi::Request &request) {
    auto lane = take(request);
    ASSERT_TRUE(lane.ok());
    EXPECT_EQ(lane->piece(0).size(), 4u);
    EXPECT_EQ(lane->piece(0).data(), lane->piece(2).data());
    EXPECT_TRUE(lane->piece(1).data() >= lane->piece(0).data() + 4 ||
                lane->piece(0).data() >= lane->piece(1).data() + 4);
  });
}

TEST_F(TransferLanes, LaneThatWasGivenBack_IsUsedAgain) {
  in_handler([&](nssi::Request &request) {
    const auto *memory = take(request)->piece(0).data();
    EXPECT_EQ(take(request)->piece(0).data(), memory);
  });
}

/// Holds both lanes, in which something moves, until it is told.
class Holder {
 public:
  void hold(Lanes &lanes, nssi::Runtime &runtime, nssi::Request &request) {
    std::optional<Lanes::Lease> first(*lanes.take(runtime, request)), second(*lanes.take(runtime, request));
    for (holds_ = true; !ends_; runtime.sleep_until(Deadline::in(std::chrono::milliseconds(1))))
      (void)first->piece(0), (void)second->piece(0);
  }
  bool holds() const { return holds_; }
  void end() { ends_ = true; }

 private:
  std::atomic<bool> holds_{false}, ends_{false};
};

TEST_F(TransferLanes, NoneFree_TimesOutAndTakesNothing) {
  Holder holder;
  auto holding = start([&](nssi::Request &request) { holder.hold(lanes_, *runtime_, request); });
  ASSERT_TRUE(nssi::testing::eventually([&] { return (void)holding.test(), holder.holds(); }));
  std::atomic<bool> has_given_up{false};
  auto late = start([&](nssi::Request &request) { has_given_up = !take(request).ok(); },
                    Deadline::in(std::chrono::milliseconds(250)));
  (void)late.wait();  // the service may be the first to look at the clock, and answer
  EXPECT_TRUE(nssi::testing::eventually([&] { return has_given_up.load(); }));
  holder.end();
  EXPECT_TRUE(holding.wait().ok());
  in_handler([&](nssi::Request &request) {
    auto one = take(request), two = take(request);
    EXPECT_TRUE(one.ok() && two.ok());
  });
}

TEST_F(TransferLanes, WhoWaits_IsServedInOrderOfArrival) {
  Holder holder;
  std::vector<int> order;
  std::vector<nssi::Call> calls;
  calls.push_back(start([&](nssi::Request &request) { holder.hold(lanes_, *runtime_, request); }));
  ASSERT_TRUE(nssi::testing::eventually([&] { return (void)calls.front().test(), holder.holds(); }));
  for (int i = 0; i < 3; ++i)
    calls.push_back(start([&, i](nssi::Request &request) {
      auto lane = take(request);
      if (lane.ok()) order.push_back(i);
    }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  in_handler([&](nssi::Request &) { EXPECT_TRUE(order.empty()); });
  holder.end();
  for (auto &call : calls) EXPECT_TRUE(call.wait().ok());
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST_F(TransferLanes, LanesInWhichNothingMoves_HoldNobodyUp) {
  std::atomic<int> stuck{0};
  std::atomic<bool> ends{false};
  std::vector<nssi::Call> calls;
  for (int i = 0; i < 2; ++i)
    calls.push_back(start([&](nssi::Request &request) {
      auto lane = take(request);
      if (lane.ok()) (void)lane->piece(0);
      for (++stuck; !ends;) runtime_->sleep_until(Deadline::in(std::chrono::milliseconds(1)));
    }));
  ASSERT_TRUE(nssi::testing::eventually([&] {
    for (auto &call : calls) (void)call.test();
    return stuck == 2;
  }));
  in_handler([&](nssi::Request &request) {
    auto one = take(request), two = take(request);
    EXPECT_TRUE(one.ok() && two.ok());
  });
  ends = true;
  for (auto &call : calls) EXPECT_TRUE(call.wait().ok());
}

}  // namespace
}  // namespace transfer
