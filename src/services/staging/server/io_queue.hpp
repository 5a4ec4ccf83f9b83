// SPDX-License-Identifier: BSD-3-Clause
// Work for the I/O thread, which alone calls native PnetCDF. Requests, for which a client waits, go before drains, so
// that the next file can be created while the last one is still on its way to the disk; and drains before what is done
// ahead of time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace staging {

class IoQueue {
 public:
  enum class Lane { kRequest, kDrain, kAhead };

  /// Any thread. In each lane, tasks run in the order of submission.
  void submit(Lane lane, std::function<void()> task);
  /// Runs tasks until stop() was called and no request or drain is left.
  void run();
  void stop();
  /// Any thread. Whether a task waits for its turn.
  bool waits(Lane lane);
  /// Forgets the tasks of kAhead; none runs any more on return. Not inside of a task.
  void drop_ahead();

 private:
  using Tasks = std::deque<std::function<void()>>;
  std::function<void()> next();
  Tasks &of(Lane lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  std::mutex mutex_;
  std::condition_variable filled_, ahead_ended_;
  Tasks lanes_[3];  ///< by Lane
  bool stopping_ = false, ahead_runs_ = false;
};

}  // namespace staging
