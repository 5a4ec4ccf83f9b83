// SPDX-License-Identifier: BSD-3-Clause
// Work for the I/O thread, which alone calls native PnetCDF. Requests, for which a client waits, go before drains, so
// that the next file can be created while the last one is still on its way to the disk.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace staging {

class IoQueue {
 public:
  enum class Lane { kRequest, kDrain };

  /// Any thread. In each lane, tasks run in the order of submission.
  void submit(Lane lane, std::function<void()> task);
  /// Runs tasks until stop() was called and none is left.
  void run();
  void stop();

 private:
  std::function<void()> next();
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::function<void()>> requests_, drains_;
  bool stopping_ = false;
};

}  // namespace staging
