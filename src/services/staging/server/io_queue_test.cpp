// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/io_queue.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace staging {
namespace {

TEST(IoQueue, RequestsGoFirstAndWhatIsDoneAheadLast) {
  IoQueue queue;
  std::string done;
  queue.submit(IoQueue::Lane::kAhead, [&] {
    done += 'a';
    queue.submit(IoQueue::Lane::kAhead, [&] { done += 'x'; });  // is not worth waiting for at the end
    queue.submit(IoQueue::Lane::kDrain, [&] { done += 'd'; });
    queue.stop();
  });
  queue.submit(IoQueue::Lane::kDrain, [&] { done += 'd'; });
  queue.submit(IoQueue::Lane::kRequest, [&] { done += 'r'; });
  queue.run();
  EXPECT_EQ(done, "rdad");
}

TEST(IoQueue, NothingRunsAheadOnceItIsDropped) {
  IoQueue queue;
  std::atomic<int> running{0}, begun{0};
  std::thread io([&] { queue.run(); });
  const auto work = [&] {
    ++begun;
    ++running;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --running;
  };
  for (int i = 0; i < 100; ++i) queue.submit(IoQueue::Lane::kAhead, work);
  while (begun == 0) std::this_thread::yield();
  queue.drop_ahead();
  EXPECT_EQ(running, 0);
  const int before = begun;
  queue.submit(IoQueue::Lane::kDrain, [] {});
  queue.stop();
  io.join();
  EXPECT_EQ(begun, before);
  EXPECT_LT(before, 100);
}

}  // namespace
}  // namespace staging
