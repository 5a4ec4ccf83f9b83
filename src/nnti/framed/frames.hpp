// SPDX-License-Identifier: BSD-3-Clause
// The frames of one connection: their numbers and their credits, in both directions, and those that wait to be sent.
//
// Each side gives the other a number of credits, and gets as many; a frame that costs one is sent only with one at
// hand. Every frame returns those that are owed; a kCredit frame does where nothing else is to be sent.
#pragma once

#include "nnti/framed/wire.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace nnti::framed {

class Frames {
 public:
  /// `credits`: frames that a peer may have on the way to us. Both sides begin without any.
  explicit Frames(std::uint32_t credits) : most_(credits) {}

  /// This side speaks first: it has credits, and gives some with its first frame.
  void begin() { credits_ = owed_ = most_; }
  /// Both sides have all of theirs from the beginning.
  void begin_with_all() { credits_ = most_; }

  // --- sending -------------------------------------------------------------------------------------------------------
  /// Numbers a frame, and has `leave(header, body)` send it. False: there are no credits, or it does not leave now.
  template <class Leave> bool post(FrameHeader header, std::span<const std::byte> body, Leave &&leave) {
    const bool costs = costs_credit(header.type);
    if (costs && credits_ == 0) return false;
    header.credits = static_cast<std::uint16_t>(owed_);
    header.size = static_cast<std::uint32_t>(body.size());
    header.sequence = next_out_;
    if (!leave(header, body)) return false;
    ++next_out_;
    uncredited_ -= std::min(uncredited_, owed_);
    owed_ = 0;
    asked_ = false;
    credits_ -= costs ? 1 : 0;
    return true;
  }
  /// Copies `body`: a peer may answer a request before it has left, and what was lent for it is then its owner's again.
  void keep(const FrameHeader &header, std::span<const std::byte> body) {
    waiting_.push_back({header, {body.begin(), body.end()}});
    waiting_answers_ += header.type == FrameType::kDone ? 1 : 0;
  }
  template <class Leave> void post_waiting(Leave &&leave) {
    while (!waiting_.empty() && post(waiting_.front().header, waiting_.front().body, leave)) {
      waiting_answers_ -= waiting_.front().header.type == FrameType::kDone ? 1 : 0;
      waiting_.pop_front();
    }
  }
  std::size_t waiting() const { return waiting_.size(); }
  /// Those of them that answer the peer.
  std::size_t waiting_answers() const { return waiting_answers_; }
  /// There are credits for all that wait, and one frame more.
  bool credits_for_more() const { return waiting_.size() < credits_; }
  /// The peer owes us nothing: it has answered, or taken, all.
  bool all_taken() const { return credits_ == most_; }
  /// A kCredit is to be sent, if nothing else is.
  bool credits_due() const { return asked_ || owed_ >= most_ / 2; }
  /// The peer asked for a sign.
  void ask_for_credits() { asked_ = true; }
  /// What was not sent, and asks for something, is not to be.
  void forget_requests() {
    std::erase_if(waiting_, [](const Waiting &frame) {
      return frame.header.type == FrameType::kGet || frame.header.type == FrameType::kPut;
    });
  }
  void forget_waiting() {
    waiting_.clear();
    waiting_answers_ = 0;
  }

  // --- receiving -----------------------------------------------------------------------------------------------------
  /// The number of the frame that comes next.
  std::uint32_t next() const { return next_in_; }
  /// It has come. False: the peer sends, or gives, more than it may.
  bool count(const FrameHeader &header) {
    ++next_in_;
    credits_ += header.credits;
    if (credits_ > most_) return false;
    if (!costs_credit(header.type)) return true;
    ++uncredited_;
    ++owed_;
    return uncredited_ <= most_;
  }

 private:
  struct Waiting {
    FrameHeader header;
    std::vector<std::byte> body;
  };

  std::uint32_t most_;
  std::uint32_t credits_ = 0;     ///< frames that we may send
  std::uint32_t owed_ = 0;        ///< credits to be returned
  std::uint32_t uncredited_ = 0;  ///< frames received whose credits were not yet returned
  bool asked_ = false;
  std::uint32_t next_out_ = 0, next_in_ = 0;
  std::deque<Waiting> waiting_;
  std::size_t waiting_answers_ = 0;
};

}  // namespace nnti::framed
