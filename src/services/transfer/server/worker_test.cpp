// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/server/worker.hpp>

#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

namespace transfer {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Status;

/// A runtime that is driven here.
class TransferWorkers : public ::testing::TestWithParam<unsigned> {
 protected:
  void in_fiber(std::function<void()> body) {
    runtime_->spawn([this, body = std::move(body)] {
      body();
      runtime_->stop();
    });
    runtime_->run();
  }
  Workers workers_{GetParam()};
  std::unique_ptr<nssi::Runtime> runtime_ = nssi::testing::open_runtime(nssi::testing::options_for("inproc", true));
};

TEST_P(TransferWorkers, Wait_GivesWhatCameOfTheWork) {
  Status good, bad, again;
  in_fiber([&] {
    good = workers_.start(*runtime_, [] { return Status(); }).wait();
    auto task = workers_.start(*runtime_, [] { return Status(Error{Code::kBadMessage, "wrong"}); });
    bad = task.wait();
    again = task.wait();
  });
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(bad.code(), Code::kBadMessage);
  EXPECT_TRUE(again.ok());
}

TEST_P(TransferWorkers, DroppedTask_HasBeenCarriedOut) {
  bool done = false;
  in_fiber([&] {
    {
      auto task = workers_.start(*runtime_, [&] { return done = true, Status(); });
    }
    EXPECT_TRUE(done);
  });
}

TEST_P(TransferWorkers, TaskThatIsReplaced_HasBeenCarriedOut) {
  std::atomic<int> done = 0;
  in_fiber([&] {
    Workers::Task task;
    for (int i = 1; i <= 3; ++i) {
      task = workers_.start(*runtime_, [&] { return ++done, Status(); });
      EXPECT_GE(done, i - 1);
    }
  });
  EXPECT_EQ(done, 3);
}

INSTANTIATE_TEST_SUITE_P(Threads, TransferWorkers, ::testing::Values(0u, 1u, 3u));

TEST(TransferWorkersEnd, RuntimeThatIsDestroyed_WaitsForTheWork) {
  Workers workers(1);
  std::atomic<bool> begun{false}, may_end{false}, done{false}, went_on_before{false};
  auto runtime = nssi::testing::open_runtime(nssi::testing::options_for("inproc", true));
  std::thread thread([&] { runtime->run(); });
  runtime->spawn([&] {
    auto task = workers.start(*runtime, [&]() -> Status {
      begun = true;
      while (!may_end) std::this_thread::yield();
      done = true;
      return {};
    });
    (void)task.wait();
    went_on_before = !done;
    may_end = true;
  });
  EXPECT_TRUE(nssi::testing::eventually([&] { return begun.load(); }));
  runtime->stop();
  thread.join();
  std::atomic<bool> gone{false};
  std::thread ender([&] {
    for (int i = 0; i < 1000 && !gone; ++i) std::this_thread::yield();  // the fiber has time to go on, if it would
    may_end = true;
  });
  runtime.reset();
  gone = true;
  ender.join();
  EXPECT_FALSE(went_on_before) << "the fiber went on while its work was under way";
}

}  // namespace
}  // namespace transfer
