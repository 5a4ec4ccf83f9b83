// SPDX-License-Identifier: BSD-3-Clause
// What is held back for a moment, so that more goes with it: frames of a lane, the ring at a sleeper's door.
//
// Whoever sends a request, and then computes for a second, must not have it wait: after a millisecond, two at most, a
// thread sends it. The thread sleeps while nothing waits anywhere, and looks every millisecond while something does.
#pragma once

#include <base/clock.hpp>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace nnti {

/// One place where something may wait. Any thread.
class Held {
 public:
  virtual ~Held() = default;

 protected:
  /// Something is about to wait; under the mutex. True: a Pusher is to watch from now on.
  bool begin_to_wait();
  /// Under the mutex: whether something waits; sends it, as far as it goes; nothing has waited for long.
  virtual bool anything_waits() const = 0;
  virtual void push() = 0;
  virtual void rest() {}

  mutable std::mutex mutex_;

 private:
  friend class Pusher;
  /// Sends what waited already when the Pusher looked last. False: it needs no watching any more.
  bool push_if_old();

  bool watched_ = false;
  bool seen_ = false;        ///< what waits did so already when the Pusher looked last
  unsigned idle_looks_ = 0;  ///< of the Pusher's, that found nothing
};

class Pusher {
 public:
  Pusher() = default;
  Pusher(const Pusher &) = delete;
  Pusher &operator=(const Pusher &) = delete;
  ~Pusher();

  /// Until it needs no watching. False: there can be no thread; nothing must wait.
  bool watch(std::shared_ptr<Held> held);

 private:
  bool start();
  void run();

  std::mutex mutex_;
  std::condition_variable something_;
  std::vector<std::shared_ptr<Held>> watched_;
  bool stop_ = false;
  std::thread thread_;
  pid_t process_ = 0;  ///< that has the thread: a child of fork has not
};

/// Whether something may be held back: whoever held it, and then did not come back in time, does not for a while.
class Doubts {
 public:
  static constexpr unsigned kFew = 8, kMany = 4096;
  /// True: not this time.
  bool any() { return left_ != 0 && left_-- != 0; }
  /// What was held back has gone. `late`: because its holder did something else.
  void on_sent(bool late) {
    if (late) left_ = next_;
    next_ = late ? std::min(2 * next_, kMany) : std::max(next_ / 2, kFew);
  }

 private:
  unsigned left_ = 0, next_ = kFew;
};

/// Whether it was the kernel who kept a thread from coming back in time. Of one thread.
class Preemption {
 public:
  bool happened_since(nessie::Clock::time_point begin);

 private:
  nessie::Clock::time_point found_at_;
  long departures_ = 0;  ///< of the thread, as found then
};

}  // namespace nnti
