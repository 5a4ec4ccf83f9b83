// SPDX-License-Identifier: BSD-3-Clause
// What is held back for a moment, so that more goes with it: frames of a stream, the ring at a sleeper's door.
//
// Whoever sends a request, and then computes for a second, must not have it wait: after 1 to 2 ms a thread sends it.
// The thread sleeps while nothing waits anywhere, and looks every millisecond while something does; more rarely, every
// 8 ms at last, as long as it never finds anything that has waited since its last look.
#pragma once

#include <base/clock.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

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
  enum class Look { kNothing, kWaits, kPushed, kIdle };
  /// Sends what waited already when the Pusher looked last. kIdle: it needs no watching any more.
  Look push_if_old();

  bool watched_ = false;
  bool seen_ = false;        ///< what waits did so already when the Pusher looked last
  unsigned idle_looks_ = 0;  ///< of the Pusher's, that found nothing
};

/// Time from one look of the Pusher's to the next. One that only ever finds what goes soon anyway would cost a full
/// node a hundredth of a core for each process.
class Pace {
 public:
  static constexpr std::chrono::milliseconds kShortest{1}, kLongest{8};
  static constexpr unsigned kCalmLooks = 16;  ///< after which it doubles

  std::chrono::milliseconds period() const { return period_; }
  /// `pushed`: something was old.
  void on_look(bool pushed) {
    calm_looks_ = pushed ? 0 : calm_looks_ + 1;
    if (pushed) period_ = kShortest;
    if (calm_looks_ < kCalmLooks) return;
    calm_looks_ = 0;
    period_ = std::min(2 * period_, kLongest);
  }

 private:
  std::chrono::milliseconds period_ = kShortest;
  unsigned calm_looks_ = 0;
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

/// Whether what was held back went late, because its holder computed, or slept. If the kernel had the core, nobody is
/// to blame: on a full node, what goes alone would be one more load. Once something was late, the next ones are looked
/// at closely; that takes two system calls each.
class Lateness {
 public:
  static constexpr std::chrono::microseconds kLate{500};

  /// Something begins to wait, and nothing else waits.
  void on_held(nessie::Clock::time_point now);
  /// It goes. True: late, by its holder's fault.
  bool on_sent();

 private:
  /// What a thread has done.
  struct Deeds {
    std::thread::id thread;
    std::chrono::nanoseconds cpu_time{};
    long sleeps = 0;
  };
  static Deeds deeds();

  nessie::Clock::time_point since_;
  unsigned looks_closely_ = 0;  ///< for so many more
  Deeds before_;                ///< if it does
};

}  // namespace nnti
