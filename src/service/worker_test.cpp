// SPDX-License-Identifier: BSD-3-Clause
#include <service/worker.hpp>

#include <nssi/testing/testing.hpp>

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace nessie::service {
namespace {

TEST(Worker, ItsOwnThreads_GetNoSignals) {
  sigset_t mask;
  sigemptyset(&mask);
  {
    Worker worker(1);
    worker.submit(Worker::Lane::kRequest, [&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  }
  EXPECT_TRUE(sigismember(&mask, SIGTERM) == 1);
}

TEST(Worker, RequestsGoFirstAndWhatIsDoneAheadLast) {
  Worker worker;
  std::string done;
  worker.submit(Worker::Lane::kAhead, [&] {
    done += 'a';
    worker.submit(Worker::Lane::kAhead, [&] { done += 'x'; });  // is not worth waiting for at the end
    worker.submit(Worker::Lane::kDrain, [&] { done += 'd'; });
    worker.stop();
  });
  worker.submit(Worker::Lane::kDrain, [&] { done += 'd'; });
  worker.submit(Worker::Lane::kRequest, [&] { done += 'r'; });
  worker.run();
  EXPECT_EQ(done, "rdad");
}

/// With the thread that calls run(), and with threads of its own.
class WorkerThreads : public ::testing::TestWithParam<unsigned> {
 protected:
  WorkerThreads() {
    if (GetParam() == 0) runner_ = std::thread([this] { worker_.run(); });
  }
  ~WorkerThreads() override {
    worker_.stop();
    if (runner_.joinable()) runner_.join();
  }
  void in_fiber(std::function<void()> body) {
    runtime_->spawn([this, body = std::move(body)] {
      body();
      runtime_->stop();
    });
    runtime_->run();
  }
  Worker worker_{GetParam()};
  std::thread runner_;
  std::unique_ptr<nssi::Runtime> runtime_ = nssi::testing::open_runtime(nssi::testing::options_for("inproc", true));
};

TEST_P(WorkerThreads, NothingRunsAheadOnceItIsDropped) {
  std::atomic<int> running{0}, begun{0};
  const auto work = [&] {
    ++begun;
    ++running;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --running;
  };
  for (int i = 0; i < 100; ++i) worker_.submit(Worker::Lane::kAhead, work);
  while (begun == 0) std::this_thread::yield();
  worker_.drop_ahead();
  EXPECT_EQ(running, 0);
  const int before = begun;
  in_fiber([&] { (void)worker_.carry_out(*runtime_, [] { return 0; }); });
  EXPECT_EQ(begun, before);
  EXPECT_LT(before, 100);
}

TEST_P(WorkerThreads, CarryOut_GivesWhatCameOfTheWork) {
  std::string good;
  in_fiber([&] { good = worker_.carry_out(*runtime_, [] { return std::string("good"); }); });
  EXPECT_EQ(good, "good");
}

TEST_P(WorkerThreads, DroppedTask_HasBeenCarriedOut) {
  bool done = false;
  in_fiber([&] {
    {
      const auto task = worker_.start(*runtime_, [&] { done = true; });
    }
    EXPECT_TRUE(done);
  });
}

TEST_P(WorkerThreads, TaskThatIsReplaced_HasBeenCarriedOut) {
  std::atomic<int> done = 0;
  in_fiber([&] {
    Worker::Task task;
    for (int i = 1; i <= 3; ++i) {
      task = worker_.start(*runtime_, [&] { ++done; });
      EXPECT_GE(done, i - 1);
    }
  });
  EXPECT_EQ(done, 3);
}

INSTANTIATE_TEST_SUITE_P(Threads, WorkerThreads, ::testing::Values(0u, 1u, 3u));

TEST(WorkerEnd, RuntimeThatIsDestroyed_WaitsForTheWork) {
  Worker worker(1);
  std::atomic<bool> begun{false}, may_end{false}, done{false}, went_on_before{false};
  auto runtime = nssi::testing::open_runtime(nssi::testing::options_for("inproc", true));
  std::thread thread([&] { runtime->run(); });
  runtime->spawn([&] {
    worker
        .start(*runtime,
               [&] {
                 begun = true;
                 while (!may_end) std::this_thread::yield();
                 done = true;
               })
        .wait();
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
}  // namespace nessie::service
