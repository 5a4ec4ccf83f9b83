// SPDX-License-Identifier: BSD-3-Clause
// Where the messages for one buffer of the C interface go: into its elements, in order, wrapping round. Messages that
// find the next element taken are parked (their ids only; the senders keep the data) and let in, one after the other,
// in the order of their arrival.
#pragma once

#include <nnti/nnti.hpp>

#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace nnti::c_api {

/// A message on its way in.
struct Arrival {
  PeerId from;
  std::uint64_t operation = 0;  ///< the sender's id of it
  std::uint64_t length = 0;
  bool large = false;  ///< to be fetched from `source`; otherwise its sender sends it
  RemoteBuffer source = {};
};

class Inbox {
 public:
  static constexpr std::size_t kMaxParked = 65536;

  explicit Inbox(std::size_t elements) : full_(elements) {}

  /// True if a message may enter now: it is its turn, and the next element is free.
  bool open() const { return !entering_ && parked_.empty() && next_free(); }
  bool park(const Arrival &arrival) {
    if (parked_.size() >= kMaxParked) return false;
    parked_.push_back(arrival);
    return true;
  }
  /// Lets `arrival` in: the next element is kept for it until entered() or gave_up().
  void enter(const Arrival &arrival) { entering_ = arrival; }
  /// Lets the first of the parked in, if the next element is free and no other is entering.
  std::optional<Arrival> next() {
    if (entering_ || parked_.empty() || !next_free()) return std::nullopt;
    entering_ = parked_.front();
    parked_.pop_front();
    return entering_;
  }
  const std::optional<Arrival> &entering() const { return entering_; }
  std::size_t element() const { return next_; }
  /// The entering message is in element(), which is the reader's now. Returns its index.
  std::size_t entered() {
    const std::size_t index = next_;
    full_[index] = true;
    next_ = (next_ + 1) % full_.size();
    entering_.reset();
    return index;
  }
  void gave_up() { entering_.reset(); }
  /// The event of element `index` was taken by the calling thread, which owns the element until release_mine().
  void taken(std::size_t index) { readers_.emplace_back(std::this_thread::get_id(), index); }
  /// Frees the elements that the calling thread had taken. True if there were any.
  bool release_mine() {
    return std::erase_if(readers_, [this](const auto &reader) {
             if (reader.first != std::this_thread::get_id()) return false;
             full_[reader.second] = false;
             return true;
           }) > 0;
  }
  /// Forgets the parked messages of a peer that is gone, and the one entering unless it is being fetched.
  void forget(PeerId peer) {
    std::erase_if(parked_, [peer](const Arrival &arrival) { return arrival.from == peer; });
    if (entering_ && entering_->from == peer && !entering_->large) entering_.reset();
  }

 private:
  bool next_free() const { return !full_[next_]; }

  std::vector<bool> full_;  ///< holds a message that is not yet released
  std::vector<std::pair<std::thread::id, std::size_t>> readers_;
  std::size_t next_ = 0;
  std::deque<Arrival> parked_;
  std::optional<Arrival> entering_;
};

}  // namespace nnti::c_api
