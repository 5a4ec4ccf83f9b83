// SPDX-License-Identifier: BSD-3-Clause
// Which thread drives: at most one at a time holds the role, and with it everything in the runtime that is not
// thread-safe. Whoever does not get the role hands his work over to the one who has it.
//
// Design notes. Most programs call from one thread only, three times taking and giving up the role for each call; a
// locked instruction would wait each time until the message that was just written has left the processor. So the first
// thread that takes the role is favoured: it enters and leaves by plain writes. The first other thread that wants the
// role declares it contested, for good, by a fence on all processors (base/fence.hpp); from then on all take it alike.
// Who waits is woken alone: when what it waits for is done and the driver has nothing else to do, or, one at a time,
// when the role is free. Were all woken each time, or each with the first of its results, sixteen threads would do
// little else.
#pragma once

#include <base/clock.hpp>
#include <base/fence.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace nssi {

class Driver {
 public:
  using Work = std::function<void()>;

  /// Takes the role if nobody has it. Not for a thread that has it already.
  bool try_take() {
    const bool favoured =
        !contested_.load(std::memory_order_relaxed) && favoured_.load(std::memory_order_relaxed) == this_thread();
    return (favoured && enter_favoured()) || try_to_take_from_all();
  }
  /// Gives the role up, after doing what was handed over meanwhile.
  void give_up() {
    do_what_is_urgent();
    leave();
    if (contested_.load(std::memory_order_acquire)) do_what_comes_late();
  }
  bool is_mine() const {
    const auto me = this_thread();
    return owner_.load(std::memory_order_relaxed) == me ||
           (favoured_inside_.load(std::memory_order_relaxed) && favoured_.load(std::memory_order_relaxed) == me);
  }

  /// Takes the role for good, ahead of the threads that drive while they wait. `wake` interrupts the one that has it.
  void take_for_run(const std::function<void()> &wake);
  /// True if a thread is waiting in take_for_run(): who drives while he waits should give up.
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }

  /// Work that must not be delayed: done by the driver's next turn, or when he gives the role up.
  void hand_over(Work work);
  /// Work for the driver's next turn.
  void post(Work work);
  /// Does what was handed over.
  void do_what_is_urgent() {
    if (pending_.load(std::memory_order_relaxed)) [[unlikely]]
      do_urgent();
  }
  /// Does what was handed over and posted. True if there was anything.
  bool do_work() { return pending_.load(std::memory_order_acquire) && do_pending(); }

  /// Blocks until `done`, or the role is free, or the deadline has passed. Who then does not take it calls pass_on().
  void wait_for_turn(const std::atomic<bool> &done, nessie::Deadline deadline);
  /// The driver has set a `done` for which another thread may wait.
  void note_done() { some_are_done_ = true; }
  /// At the end of each turn: those threads are woken once there is nothing else to do, or some turns later, as by then
  /// more of what they wait for may be done.
  void wake_done(bool is_busy) {
    if (!some_are_done_ || (is_busy && ++turns_held_ < kMostTurnsHeld)) return;
    some_are_done_ = false;
    turns_held_ = 0;
    nessie::light_fence(true);
    if (contested_.load(std::memory_order_acquire)) wake(false);
  }
  /// Should the role be free, the next one that waits for it is woken.
  void pass_on() {
    if (contested_.load(std::memory_order_acquire) && is_free()) wake(true);
  }

 private:
  /// Read anew each time: a fiber may go on in another thread.
  static std::uintptr_t this_thread() {
#if defined(__x86_64__)
    std::uintptr_t me = 0;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(me));
    return me;
#else
    return address_in_this_thread();
#endif
  }
  static std::uintptr_t address_in_this_thread();
  /// Only the favoured thread's. False: somebody else wants the role, too.
  bool enter_favoured() {
    favoured_inside_.store(true, std::memory_order_relaxed);
    nessie::light_fence(true);
    if (!contested_.load(std::memory_order_acquire)) [[likely]]
      return true;
    favoured_inside_.store(false);
    return false;
  }
  bool try_to_take_from_all();
  void contest();
  bool is_free() const { return owner_.load() == 0 && !favoured_inside_.load(); }
  void leave() {
    if (owner_.load(std::memory_order_relaxed) == this_thread()) return owner_.store(0);
    favoured_inside_.store(false, std::memory_order_release);
    nessie::light_fence(true);
  }
  void do_what_comes_late();
  void wake(bool is_left);
  bool do_pending();
  void do_urgent();

  std::atomic<std::uintptr_t> owner_{0};     ///< who has taken the role as everybody does
  std::atomic<std::uintptr_t> favoured_{0};  ///< who need not, until it is contested
  std::atomic<bool> favoured_inside_{false};
  std::atomic<bool> contested_{!nessie::join_asymmetric_fences()};
  std::atomic<bool> everybody_knows_{false};  ///< of the contest: the fence is behind us
  std::atomic<bool> wanted_{false};
  std::atomic<bool> pending_{false};  ///< something was handed over or posted
  std::atomic<bool> urgent_{false};   ///< something was handed over
  std::atomic<int> waiters_{0};
  static constexpr int kMostTurnsHeld = 16;
  bool some_are_done_ = false;  ///< see note_done()
  int turns_held_ = 0;          ///< since then
  /// A thread in wait_for_turn().
  struct Waiting {
    const std::atomic<bool> *done;
    bool is_called = false;
    std::condition_variable called = {};
  };
  std::mutex mutex_;
  std::vector<Waiting *> waiting_;       ///< in the order in which they came
  const Waiting *next_ = nullptr;        ///< of these, who was told that the role is free
  std::condition_variable left_to_run_;  ///< for take_for_run()
  std::vector<Work> handed_over_, posted_;
};

/// Holds the role for a scope, if it can be had; nests. What was handed over before, perhaps by this very thread, is
/// done first.
class Turn {
 public:
  [[gnu::always_inline]] explicit Turn(Driver &driver)
      : driver_(driver), nested_(driver.is_mine()), taken_(!nested_ && driver.try_take()) {
    if (taken_) driver_.do_what_is_urgent();
  }
  ~Turn() {
    if (taken_) driver_.give_up();
  }
  Turn(const Turn &) = delete;
  explicit operator bool() const { return nested_ || taken_; }
  bool nested() const { return nested_; }

 private:
  Driver &driver_;
  bool nested_, taken_;
};

}  // namespace nssi
