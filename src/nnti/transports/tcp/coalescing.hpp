// SPDX-License-Identifier: BSD-3-Clause
// Which frames of a stream wait for the next ones, to be sent together.
//
// A frame that goes alone costs a system call and a segment, at both ends; of sixteen that go together each costs a
// tenth of that. So a frame waits where more are about to follow:
//  - frames that came together are mostly answered together: the answer to the last of them takes the others along;
//  - while the peer has twice as many frames to answer as wait here, it does not run dry.
// Only as many may wait as came and have not been answered. So nothing waits of those who send on their own account,
// who get one answer at a time, or who begin: they are faster off at once.
#pragma once

#include "nnti/framed/pusher.hpp"

#include <base/clock.hpp>

#include <algorithm>
#include <utility>

namespace nnti::tcp {

template <class Clock = nessie::Clock> class Coalescing {
 public:
  using Time = typename Clock::time_point;
  static constexpr std::chrono::microseconds kSoon{20};     ///< after the last one, or none follows
  static constexpr std::chrono::microseconds kLinger{200};  ///< the first one waits no longer, if there are polls
  static constexpr std::chrono::milliseconds kLately{2};    ///< since frames came, or were sent

  /// `busy_at`: when frames came, or were sent, over any of the streams that one thread serves. Frames that came over
  /// all of them at once are answered one stream after the other: each one's share comes soon after the last one's.
  explicit Coalescing(Time &busy_at) : busy_at_(busy_at) {}

  /// Frames came together.
  void on_received(unsigned frames) {
    unanswered_ -= std::min(unanswered_, frames);
    answered_ = answered_ || frames > 0;
    const bool alone = frames == 0 || (frames == 1 && unanswered_ < 2);
    came_ = frames + (alone ? 0 : std::min(came_, kMostEarlier));
    if (alone) return;
    if (doubts_.any())
      came_ = 0;
    else
      busy_at_ = touched_ = Clock::now();
  }
  /// A frame is to be sent: whether it waits, if it may.
  bool on_frame(bool may_wait) {
    const unsigned at_peer = this->at_peer();
    unanswered_ = std::min(unanswered_ + 1, kCounted);
    if (came_ == 0) return false;
    if (--came_ == 0 && at_peer < 2 * (waiting_ + 1)) return false;
    if (!may_wait) return false;
    const auto now = Clock::now();
    const bool soon = now - std::exchange(busy_at_, now) <= kSoon;
    const bool lately = now - std::exchange(touched_, now) <= kLately;
    if (!soon || !lately || (waiting_ > 0 && now - since_ > kLinger)) return false;
    if (waiting_++ == 0) {
      since_ = now;
      answered_ = false;
    }
    return true;
  }
  bool any_waits() const { return waiting_ > 0; }
  /// Somebody polls: whether those that wait are to go.
  bool due() {
    if (waiting_ >= at_peer()) return true;
    const auto now = Clock::now();
    if (now - touched_ <= kSoon && now - since_ <= kLinger) return false;
    if (!answered_) unanswered_ = waiting_;  // what the peer was sent is not what it answers
    return true;
  }
  /// When the first of those that wait began to.
  Time since() const { return since_; }
  /// Those that waited go. `late`: because nobody polled.
  void on_sent(bool late) {
    doubts_.on_sent(late);
    waiting_ = 0;
  }

 private:
  static constexpr unsigned kCounted = 1 << 20;
  static constexpr unsigned kMostEarlier = 64;  ///< of those that came earlier: some are never answered

  unsigned at_peer() const { return unanswered_ - std::min(unanswered_, waiting_); }

  unsigned came_ = 0;        ///< frames that came, less those that were sent since
  unsigned unanswered_ = 0;  ///< frames that were sent, or wait, less those that came
  unsigned waiting_ = 0;
  Doubts doubts_;          ///< in times of receiving
  bool answered_ = false;  ///< something came since the first one waits
  Time &busy_at_;
  Time touched_, since_;  ///< when frames came, or one might have waited; when the first of those that do began to
};

}  // namespace nnti::tcp
