// SPDX-License-Identifier: BSD-3-Clause
#include <service/buffers.hpp>

#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

namespace nessie::service {
namespace {

constexpr nssi::OpCode kAnything = 1000;

/// What is done to buffers is done by the handlers of a service.
class BuffersTest : public ::testing::Test {
 protected:
  using Body = std::function<void(nssi::Request &)>;
  void SetUp() override {
    server_ = std::make_unique<nssi::testing::ServiceThread>(
        nssi::testing::options_for("inproc", true), [this](nssi::Runtime &runtime) {
          runtime_ = &runtime;
          buffers_.emplace(runtime, budget_, BuffersOptions{"buffers", 4096, 2, [this](nssi::PeerId caller) {
                                                              return stuck_ == caller;
                                                            }});
          (void)runtime.add_operation({nssi::testing::kInterface, 0, kAnything, "anything", nssi::HandlerKind::kFiber,
                                       [this](nssi::Request &request) {
                                         next_body()(request);
                                         (void)request.reply();
                                       }});
        });
    client_ = nssi::testing::open_runtime(nssi::testing::options_for("inproc", false));
    peer_ = *client_->connect(server_->runtime->url(), Deadline::in(std::chrono::seconds(20)));
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
    buffers_.reset();
  }
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
  Result<Buffers::Lease> take(nssi::Request &request, nssi::PeerId caller = nssi::PeerId{99}) {
    return buffers_->take(caller, &request);
  }

  Budget budget_{3 * 4096};
  std::optional<Buffers> buffers_;
  std::atomic<nssi::PeerId> stuck_{nssi::PeerId{}};
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

TEST_F(BuffersTest, BufferThatWasGivenBack_IsUsedAgain) {
  in_handler([&](nssi::Request &request) {
    const auto *memory = take(request)->data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
    EXPECT_EQ(take(request)->data(), memory);
    EXPECT_EQ(budget_.used_bytes(), 4096u);
  });
}

/// Holds both buffers until it is told.
class Holder {
 public:
  void hold(Buffers &buffers, nssi::Runtime &runtime, nssi::PeerId caller) {
    const auto first = buffers.take(caller), second = buffers.take(caller);
    for (holds_ = true; !ends_;) runtime.sleep_until(Deadline::in(std::chrono::milliseconds(1)));
  }
  bool holds() const { return holds_; }
  void end() { ends_ = true; }

 private:
  std::atomic<bool> holds_{false}, ends_{false};
};

TEST_F(BuffersTest, NoneFree_TimesOutAndTakesNothing) {
  Holder holder;
  auto holding = start([&](nssi::Request &) { holder.hold(*buffers_, *runtime_, nssi::PeerId{1}); });
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

TEST_F(BuffersTest, WhoWaits_IsServedInOrderOfArrival) {
  Holder holder;
  std::vector<int> order;
  std::vector<nssi::Call> calls;
  calls.push_back(start([&](nssi::Request &) { holder.hold(*buffers_, *runtime_, nssi::PeerId{1}); }));
  ASSERT_TRUE(nssi::testing::eventually([&] { return (void)calls.front().test(), holder.holds(); }));
  for (int i = 0; i < 3; ++i)
    calls.push_back(start([&, i](nssi::Request &request) {
      const auto buffer = take(request);
      if (buffer.ok()) order.push_back(i);
    }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  in_handler([&](nssi::Request &) { EXPECT_TRUE(order.empty()); });
  holder.end();
  for (auto &call : calls) EXPECT_TRUE(call.wait().ok());
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST_F(BuffersTest, ACallerThatIsStuck_HoldsNobodyUp_AndGetsNoMore) {
  Holder holder;
  auto holding = start([&](nssi::Request &) { holder.hold(*buffers_, *runtime_, nssi::PeerId{1}); });
  ASSERT_TRUE(nssi::testing::eventually([&] { return (void)holding.test(), holder.holds(); }));
  stuck_ = nssi::PeerId{1};
  std::atomic<bool> has_more{false};
  auto more = start([&](nssi::Request &request) { has_more = take(request, nssi::PeerId{1}).ok(); });
  in_handler([&](nssi::Request &request) { EXPECT_TRUE(take(request).ok()); });
  EXPECT_FALSE(has_more);
  stuck_ = nssi::PeerId{};
  holder.end();
  EXPECT_TRUE(holding.wait().ok());
  EXPECT_TRUE(more.wait().ok());
  EXPECT_TRUE(has_more);
}

TEST_F(BuffersTest, WhereTheBudgetHasNoRoom_WaitsUntilThereIs) {
  Budget::Account other(budget_, "other");
  ASSERT_TRUE(other.try_take(2 * 4096));
  std::atomic<bool> has_first{false}, has_second{false};
  auto call = start([&](nssi::Request &request) {
    const auto first = take(request);
    has_first = first.ok();
    has_second = take(request).ok();
  });
  ASSERT_TRUE(nssi::testing::eventually([&] { return (void)call.test(), has_first.load(); }));
  in_handler([&](nssi::Request &) {});  // the first one waits by then
  EXPECT_FALSE(has_second);
  other.give_back(4096);
  EXPECT_TRUE(call.wait().ok());
  EXPECT_TRUE(has_second);
}

TEST_F(BuffersTest, WhereTheSystemHasNoMemory_WaitsAndLeavesNothingBehind) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers take a request for too much memory for an error";
#endif
  Buffers buffers(*runtime_, budget_, {"too large", std::size_t{1} << 62, 1});
  std::atomic<Code> code{Code::kOk};
  const auto take_one = [&](nssi::Request &request) { code = buffers.take(request.caller(), &request).code(); };
  (void)start(take_one, Deadline::in(std::chrono::milliseconds(200))).wait();  // ends here or there
  EXPECT_TRUE(nssi::testing::eventually([&] { return code != Code::kOk; }));
  EXPECT_NE(code, Code::kInternal);
  EXPECT_EQ(budget_.used_bytes(), 0u);
  in_handler([&](nssi::Request &) {});
}

TEST_F(BuffersTest, WhatIsKeptForLater_IsGivenUpWhenAnotherPoolIsShort) {
  Budget::Account other(budget_, "other");
  in_handler([&](nssi::Request &request) { auto one = take(request), two = take(request); });
  EXPECT_EQ(budget_.used_bytes(), 2 * 4096u);
  ASSERT_TRUE(other.try_take(4096));
  EXPECT_FALSE(other.try_take(4096));
  EXPECT_EQ(budget_.used_bytes(), 4096u);
  EXPECT_TRUE(other.try_take(2 * 4096));
  in_handler([&](nssi::Request &request) { EXPECT_TRUE(take(request).ok()); });
}

}  // namespace
}  // namespace nessie::service
